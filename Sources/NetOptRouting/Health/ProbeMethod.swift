/// How an endpoint is probed.
public enum ProbeMethod: String, Hashable, Sendable, CaseIterable {
  /// A TCP handshake. It shows only that something answers at the address. A middlebox may answer for any
  /// address.
  case tcp
  /// A TCP handshake and a TLS handshake, with the host's name in SNI and the certificate verified. The TLS
  /// handshake may resume an earlier session if the connection is kept for requests. For port 80, the probe
  /// makes no TLS handshake, as with `tcp`.
  case tls
  /// A HEAD request for the host's health path. The response must have the status that the list names. The
  /// connection is as with `tls`, or without TLS for port 80. For a host without a health path, the request
  /// is for `/`, and any status below 500 is a success.
  case http
  /// An ICMP echo request. It shows that the machine is reachable, whatever runs on it. Many networks drop
  /// echo requests, so a failure is reported and never counts against the endpoint.
  case icmp
}
