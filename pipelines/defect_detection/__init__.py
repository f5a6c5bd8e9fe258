"""Defect detection: PicoDet and PP-YOLOE+ as a `Task`; ppdet builds the layers and assigns, nothing more of it runs."""
