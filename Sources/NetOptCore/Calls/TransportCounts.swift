/// What a transport has counted since it was made, for metrics. Changes of the network do not reset the counts.
package struct TransportCounts: Hashable, Sendable {
  /// The connections that are open or being opened now, with idle ones and those of probes.
  package var openConnections = 0
  /// The connections that were begun, with those of probes and those that failed.
  package var connections = 0
  /// The TLS handshakes with servers that agreed on a new session, and led to a connection for a request or probe.
  package var fullHandshakes = 0
  /// The TLS handshakes with servers that resumed a session (RFC 8446, section 2.2), and led to such a connection.
  package var resumedHandshakes = 0
  /// The bytes of responses' bodies that were taken, before content decoding. Not those that are dropped: after the
  /// end of the call, and in the piece in which a body turns out to be faulty.
  package var receivedBytes = 0
  /// The bytes of requests' bodies that were handed out for sending, those of repeated requests again.
  package var sentBytes = 0

  package init() {}
}
