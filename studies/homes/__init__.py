"""Study of rule lists: homes of Home Assistant with areas and habits, some of which are held out."""
