"""python3 -m switchyard_plugin MODULE CALLABLE: see launch."""

from .launch import main

main()
