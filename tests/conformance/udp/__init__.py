"""The scenarios of Spec: 04 §25 against real sockets; `driver.py` and `raw.py` tell what a test has at hand."""
