"""Defect detection: PaddleDetection's PicoDet and PP-YOLOE+ as a `Task`; ppdet builds the layers, nothing else of it runs."""
