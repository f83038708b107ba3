// Package rules has Prometheus's own checker judge the alerts, their tests and the
// queries of the dashboard.
package rules
