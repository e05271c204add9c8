// Program empty does nothing: the floor of any Go program's start.
package main

func main() {}
