// Program grpcecho is a go-plugin plugin with the service of package echo.
package main

import (
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/switchyard-plugins/switchyard/runtime/bench/echo"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: echo.Handshake,
		Plugins:         plugin.PluginSet{"echo": &echo.Plugin{}},
		GRPCServer:      plugin.DefaultGRPCServer,
		Logger:          hclog.NewNullLogger(),
	})
}
