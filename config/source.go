package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/binlog-outbox/binlog-outbox/javaregex"
)

// Addresses are the servers that may be the source, host first, each as host:port.
func (s Source) Addresses() []string {
	var all []string
	port := strconv.Itoa(s.Port)
	if s.Host != "" {
		all = append(all, net.JoinHostPort(s.Host, port))
	}
	for _, h := range s.Hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
		all = append(all, h)
	}
	return all
}

// Origins tells whether transactions of a server UUID, as the server writes it,
// count; nil when all do. The function is safe for concurrent use; its error is
// javaregex.ErrTooLong, with the key and the UUID.
func (s Source) Origins() (func(uuid string) (bool, error), error) {
	list, key, in := s.GTIDInclude, "gtid_include", true
	if len(list) == 0 {
		list, key, in = s.GTIDExclude, "gtid_exclude", false
	}
	if len(list) == 0 {
		return nil, nil
	}
	var patterns []*javaregex.Pattern
	for _, p := range list {
		re, err := javaregex.CompileFold(strings.TrimSpace(p))
		if err != nil {
			return nil, &FieldError{Path: "source." + key, Err: fmt.Errorf("%q: %w", p, notRegex(err))}
		}
		patterns = append(patterns, re)
	}
	return func(uuid string) (bool, error) {
		matches, err := anyMatches(patterns, uuid)
		if err != nil {
			return false, fmt.Errorf("source.%s, held against %s: %w", key, uuid, err)
		}
		return matches == in, nil
	}, nil
}
