package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/binlog-outbox/binlog-outbox/config"
	"github.com/binlog-outbox/binlog-outbox/debezium"
	"github.com/binlog-outbox/binlog-outbox/router"
)

// inputs are the files and flags that a configuration is made of.
type inputs struct {
	config     string
	worker     string
	connectors []string
	dataDir    string
}

func (in *inputs) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&in.config, "config", "c", "", "the node's `file`, in YAML")
	f.StringVar(&in.worker, "worker", "", "a Kafka Connect worker `file` (worker.properties), for the connectors given as arguments")
	f.StringVar(&in.dataDir, "data-dir", "", "`directory` for what the node must remember; wins over node.data_dir")
}

// load builds the configuration. File, worker and connector files, environment
// and flags win over each other in this order.
func (in *inputs) load() (*config.Config, error) {
	layers, err := in.layers()
	if err != nil {
		return nil, err
	}
	b := config.Builder{Checks: []config.Check{checkRoute}}
	return b.Build(layers...)
}

func (in *inputs) layers() ([]config.Layer, error) {
	if in.config == "" && in.worker == "" && len(in.connectors) == 0 {
		return nil, errors.New("no configuration: give --config node.yaml, or --worker worker.properties with connector files")
	}
	var layers []config.Layer
	if in.config != "" {
		layers = append(layers, config.File(in.config))
	}
	if in.worker != "" || len(in.connectors) > 0 {
		opts, err := in.debeziumFiles()
		if err != nil {
			return nil, err
		}
		c, err := debezium.Convert(opts)
		if err != nil {
			return nil, err
		}
		layers = append(layers, config.Append(c.Settings...))
	}
	layers = append(layers, config.Environ(os.Environ()))
	if in.dataDir != "" {
		layers = append(layers, config.Settings(config.Setting{
			Path: "node.data_dir", Value: in.dataDir, Origin: config.Origin{File: "command line", Key: "--data-dir"},
		}))
	}
	return layers, nil
}

func (in *inputs) debeziumFiles() (o debezium.Options, err error) {
	if in.worker != "" {
		f, err := readFile(in.worker)
		if err != nil {
			return o, err
		}
		o.Worker = &f
	}
	for _, name := range in.connectors {
		f, err := readFile(name)
		if err != nil {
			return o, err
		}
		o.Connectors = append(o.Connectors, f)
	}
	return o, nil
}

func readFile(name string) (debezium.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return debezium.File{}, fmt.Errorf("reading the configuration: %w", err)
	}
	return debezium.File{Name: name, Data: data}, nil
}

// checkRoute holds a connector to the router's own rules.
func checkRoute(c *config.Connector) error {
	rc, err := routerConfig(c)
	if err == nil {
		_, err = router.New(rc)
	}
	if err != nil {
		return &config.FieldError{Path: "outbox", Err: err}
	}
	return nil
}
