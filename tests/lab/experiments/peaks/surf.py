"""A trace in SURF's form: a job is (when it comes in seconds, cores, the part of them that it uses each 5 minutes)."""

from lab.experiments.peaks.trace import JOBS, STEP_SECONDS, USAGE


def write(folder, *jobs):
    (folder / JOBS).parent.mkdir(parents=True)
    heads, rows, parts = "id,submit_s,duration_s,cpu_count", [], []
    for number, (submitted, cores, fractions) in enumerate(jobs):
        rows.append(f"j{number},{submitted},{len(fractions) * STEP_SECONDS:g},{cores}")
        parts += [f"j{number},{step},{fraction}" for step, fraction in enumerate(fractions)]
    (folder / JOBS).write_text("\n".join((heads, *rows)) + "\n", encoding="utf-8")
    (folder / USAGE).write_text("\n".join(("id,k,frac", *parts)) + "\n", encoding="utf-8")
    return folder
