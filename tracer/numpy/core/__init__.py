"""Foundations of the namespace: conversion, promotion, dtypes, keywords, printing, DLPack."""
