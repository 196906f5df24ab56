"""Reading what our processes say of themselves."""

import pytest

from extender.adapters.metrics.scraping import by_address, of_pods, scraped
from extender.errors import ClusterError
from tests.service.app.inspection.api_server import SERVES, Server


def test_what_is_no_text_of_metrics_is_a_cluster_error():
    with pytest.raises(ClusterError, match="not the text of /metrics"):
        scraped("here", "<html>{")


def test_an_address_that_is_none_is_a_cluster_error():
    for address in ("nonsense://", "localhost:10352", "127.0.0.1:10352", "ftp://a"):
        with pytest.raises(ClusterError, match=rf"'{address}' is no address; accepted: such as http://127"):
            by_address(address)


def test_an_address_at_which_nobody_listens_is_named_once():
    with pytest.raises(ClusterError) as failed:
        by_address("http://127.0.0.1:1")
    why = "Failed to establish a new connection: Connection refused; is a server there?"
    assert str(failed.value) == f"http://127.0.0.1:1: {why}"


@pytest.mark.parametrize("changes", [{"status": {"phase": "Pending"}}, {"spec": {"containers": [{}]}}])
def test_pods_that_do_not_run_or_serve_no_extender_are_not_asked(changes):
    assert of_pods(Server(), [{**SERVES, **changes}]) == []


def test_what_is_no_number_says_nothing():
    scrape = scraped("here", "a 1\nb NaN\nc +Inf\nd 1e308\n")
    assert [scrape.knows(name) for name in "abcd"] == [True, False, False, False]
