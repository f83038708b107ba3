// Package admin is the HTTP surface of a node: probes, metrics, status and
// profiles. It only reads what others tell it through the interfaces it declares.
package admin
