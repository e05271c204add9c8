// Program grpcplugin is a go-plugin server that offers gRPC's own health service,
// which go-plugin registers by itself: the least that such a plugin can be.
package main

import (
	"context"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

func main() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BENCH_PLUGIN", MagicCookieValue: "1"},
		Plugins:         plugin.PluginSet{"health": &nothing{}},
		GRPCServer:      plugin.DefaultGRPCServer,
		Logger:          hclog.NewNullLogger(),
	})
}

// nothing adds no service of its own.
type nothing struct{ plugin.NetRPCUnsupportedPlugin }

func (*nothing) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (*nothing) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, nil
}
