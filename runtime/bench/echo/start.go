package echo

import (
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

// Start starts the go-plugin plugin at path. The returned function ends it.
func Start(path string) (*Client, func(), error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  Handshake,
		Plugins:          plugin.PluginSet{"echo": &Plugin{}},
		Cmd:              exec.Command(path),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
	})
	rpc, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, nil, err
	}
	service, err := rpc.Dispense("echo")
	if err != nil {
		client.Kill()
		return nil, nil, err
	}
	return service.(*Client), client.Kill, nil
}
