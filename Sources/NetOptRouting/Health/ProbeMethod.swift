/// How an endpoint is probed.
public enum ProbeMethod: String, Hashable, Sendable, CaseIterable {
  /// A TCP handshake. It shows only that something answers at the address, and not that it is the endpoint: a
  /// middlebox on the way may answer for any address.
  case tcp
  /// A TCP handshake and a TLS handshake, with the host's name in SNI and the certificate verified. The TLS
  /// handshake may resume an earlier session if the connection is kept for requests. For `http`, the probe
  /// makes no TLS handshake, as with `tcp`.
  case tls
  /// A HEAD request for the path of the host's health check in the list. The response must have the status
  /// that the list names. The connection is opened as with `tls`, or without TLS for `http`. For a host
  /// without a health check, the request is for `/`, and any status below 500 is a success.
  case http
  /// An ICMP echo request. It shows that the endpoint's machine is reachable, whatever runs on the machine.
  /// Many networks drop echo requests. So a failure is reported, but never counts against the endpoint.
  case icmp
}
