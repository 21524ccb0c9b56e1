// Package e2e tests session-keeper with the real client, black-box.
//
// Each test is a user on a machine of their own: an empty environment, a home
// folder in the test's temporary folder, a project, a mock of the Messages API
// on the loopback interface, and the programs of this repository as a build
// makes them. It holds no code besides tests. CONTRIBUTING.md says how to run
// them.
package e2e
