"""Who we are to Prometheus, and whom we trust."""

import contextlib
import gc
import os
import ssl
import time

import pytest
import trustme

from extender.adapters.usage.access import Access
from extender.errors import UsageError
from extender.settings.sections import UsageAccess
from tests.service.adapters.usage.fake import NODES, FakePrometheus, source


@pytest.fixture
def fake():
    with FakePrometheus() as server:
        yield server


def asked(fake, access, path=""):
    source(fake.url + path, access=access).look(NODES, [])
    return fake.requests[-1]


def test_a_token_file_is_read_again_for_each_look(fake, tmp_path):
    file = tmp_path / "token"
    reader = source(fake.url, access=UsageAccess(token_file=str(file)))
    for token in ("first", "second"):
        file.write_text(f"{token}\n")
        reader.look(NODES, [])
        assert fake.requests[-1][1]["Authorization"] == f"Bearer {token}"


def test_basic_auth_takes_the_password_from_a_file(fake, tmp_path):
    (tmp_path / "password").write_text("open sesame")
    access = UsageAccess(username="me", password_file=str(tmp_path / "password"))
    assert asked(fake, access)[1]["Authorization"] == "Basic bWU6b3BlbiBzZXNhbWU="


def test_headers_and_a_path_before_the_api_are_sent(fake):
    path, headers, _ = asked(fake, UsageAccess(headers={"X-Scope-OrgID": "team-1"}), "/prometheus/")
    assert path == "/prometheus/api/v1/query"
    assert headers["X-Scope-OrgID"] == "team-1"


@pytest.mark.parametrize("text", [None, "", "two\nlines", "umlaut-\u00fc"])
def test_a_token_that_cannot_be_used_is_a_failure_that_does_not_tell_it(fake, tmp_path, text):
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        asked(fake, UsageAccess(token_file=str(file)))
    assert raised.value.kind == "credentials"
    assert str(file) in str(raised.value)
    assert not text or text not in str(raised.value)
    assert not fake.requests


def test_a_redirect_is_not_followed_so_the_token_stays_here(fake, tmp_path):
    (tmp_path / "token").write_text("secret")
    with FakePrometheus() as other:
        fake.status, fake.reply_headers = 307, {"Location": f"{other.url}/api/v1/query"}
        with pytest.raises(UsageError, match="307"):
            asked(fake, UsageAccess(token_file=str(tmp_path / "token")))
        assert not other.requests


@pytest.fixture
def authority():
    return trustme.CA()


@pytest.fixture
def secure(authority):
    """Run a server that wants a client certificate of the same authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with FakePrometheus(context) as server:
        yield server


def files(authority, folder, name="client"):
    ca, cert, key = (str(folder / f"{name}-{part}.pem") for part in ("ca", "cert", "key"))
    authority.cert_pem.write_to_path(ca)
    issued = authority.issue_cert("client@example.org")
    issued.private_key_pem.write_to_path(key)
    with open(cert, "wb") as file:
        for blob in issued.cert_chain_pems:
            file.write(blob.bytes())
    return UsageAccess(ca_file=ca, cert_file=cert, key_file=key)


def test_a_client_certificate_and_an_authority_of_ones_own_are_used(secure, authority, tmp_path):
    asked(secure, files(authority, tmp_path))
    assert len(secure.requests) == 7


def test_a_server_of_another_authority_is_not_believed(secure, tmp_path):
    with pytest.raises(UsageError, match="certificate verify failed") as raised:
        asked(secure, files(trustme.CA(), tmp_path))
    assert raised.value.kind == "unreachable"
    assert not secure.requests


def test_certificates_that_were_renewed_are_taken_up(secure, authority, tmp_path):
    wrong = files(trustme.CA(), tmp_path, "client")
    reader = source(secure.url, access=wrong)
    with pytest.raises(UsageError):
        reader.look(NODES, [])
    renewed = files(authority, tmp_path, "client")
    for name in (renewed.ca_file, renewed.cert_file, renewed.key_file):
        os.utime(name, (1, 1))
    reader.look(NODES, [])
    assert secure.requests


def test_a_certificate_that_is_not_there_is_a_failure_of_the_credentials(fake):
    with pytest.raises(UsageError, match=r"/nowhere/ca\.pem") as raised:
        asked(fake, UsageAccess(ca_file="/nowhere/ca.pem"))
    assert raised.value.kind == "credentials"


def test_a_question_that_fails_leaves_nothing_that_only_a_look_for_cycles_frees():
    access = Access("http://127.0.0.1:1", UsageAccess())
    for _ in range(2):  # the first one makes what stays
        gc.collect()
        gc.disable()
        try:
            with contextlib.suppress(UsageError):
                access.post("/api/v1/query", {}, time.monotonic() + 5)
            left = gc.collect()
        finally:
            gc.enable()
    assert left == 0
