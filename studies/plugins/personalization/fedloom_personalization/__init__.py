"""pFedMe and Per-FedAvg, which the study of markets compares with PF-GNN+, as a plug-in of fedloom."""
