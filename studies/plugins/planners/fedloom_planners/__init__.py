"""Planners that the studies compare with BGTplanner, as a plug-in of fedloom."""
