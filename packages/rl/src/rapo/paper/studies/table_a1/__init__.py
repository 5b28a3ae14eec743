"""Table A.1: SS and the fixed-threshold Shield, with what the Shield computes."""
