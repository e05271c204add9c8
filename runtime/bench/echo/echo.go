// Package echo is the gRPC service that carries what package items has, as a go-plugin
// plugin.
package echo

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/switchyard-plugins/switchyard/runtime/bench/echo/items"
)

// Handshake is what go-plugin's host and plugin say to each other first.
var Handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BENCH_PLUGIN", MagicCookieValue: "1"}

// Plugin is the service as go-plugin takes it. The client's side is a *Client.
type Plugin struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer implements plugin.GRPCPlugin.
func (*Plugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&service, nil)
	return nil
}

// GRPCClient implements plugin.GRPCPlugin.
func (*Plugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &Client{conn}, nil
}

// service is what protoc would generate for
//
//	service Echo {
//	  rpc Echo(google.protobuf.BytesValue) returns (google.protobuf.BytesValue);
//	  rpc Count(google.protobuf.BytesValue) returns (stream google.protobuf.BytesValue);
//	}
var service = grpc.ServiceDesc{
	ServiceName: "bench.Echo",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Echo", Handler: serveEcho}},
	Streams:     []grpc.StreamDesc{{StreamName: "Count", Handler: serveCount, ServerStreams: true}},
}

func serveEcho(_ any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := read(in); err != nil {
		return nil, err
	}
	echo := func(_ context.Context, in any) (any, error) { return in, nil }
	if intercept == nil {
		return echo(ctx, in)
	}
	return intercept(ctx, in, &grpc.UnaryServerInfo{FullMethod: "/bench.Echo/Echo"}, echo)
}

func serveCount(_ any, stream grpc.ServerStream) error {
	in := new(wrapperspb.BytesValue)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	total, err := items.ReadCount(in.Value)
	if err != nil {
		return err
	}
	var item wrapperspb.BytesValue
	for n := range total {
		item.Value = items.Append(item.Value[:0], n)
		if err := stream.SendMsg(&item); err != nil {
			return err
		}
	}
	return nil
}

// A Client calls the service.
type Client struct{ conn *grpc.ClientConn }

// Echo is one round trip.
func (c *Client) Echo(ctx context.Context, payload []byte) ([]byte, error) {
	in, out := &wrapperspb.BytesValue{Value: payload}, new(wrapperspb.BytesValue)
	err := c.conn.Invoke(ctx, "/bench.Echo/Echo", in, out)
	return out.Value, err
}

// Count asks for a stream of n items. The returned function reads the next one, valid
// until it is called again; its error is io.EOF at the end.
func (c *Client) Count(ctx context.Context, n int) (next func() ([]byte, error), err error) {
	stream, err := c.conn.NewStream(ctx, &service.Streams[0], "/bench.Echo/Count")
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&wrapperspb.BytesValue{Value: items.Count(n)}); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	item := new(wrapperspb.BytesValue)
	return func() ([]byte, error) {
		err := stream.RecvMsg(item)
		return item.Value, err
	}, nil
}
