"""`python -m pipelines.doctor`: the findings as plain text, for environments where not even the CLI starts."""

from __future__ import annotations

from pipelines.doctor import diagnose

if __name__ == "__main__":
    findings = diagnose()
    for finding in findings:
        print(f"{finding.verdict:5} {finding.name:14} {finding.value}")
        if finding.advice:
            print(f"{'':20} {finding.advice}")
    raise SystemExit(any(finding.verdict == "bad" for finding in findings))
