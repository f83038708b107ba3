// Package admin is the HTTP surface of a node: probes, metrics, status and
// profiles, and what operators ask for. What it says and does goes through the
// interfaces that it declares.
package admin
