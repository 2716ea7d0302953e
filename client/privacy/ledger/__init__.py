"""Privacy ledger: releases of one data set, stored durably."""
