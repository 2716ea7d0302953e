"""Local training and evaluation of one client or a cohort."""
