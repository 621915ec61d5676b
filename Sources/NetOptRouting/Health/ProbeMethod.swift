/// How an endpoint is probed.
public enum ProbeMethod: String, Hashable, Sendable, CaseIterable {
  /// A TCP handshake. It shows that something answers there: a middlebox may do that for anyone.
  case tcp
  /// TCP and a full TLS handshake, with the host's name in SNI and the certificate verified.
  case tls
  /// A HEAD of the host's health path, to be answered with the status that the list names, on a connection as `tls` opens
  /// it, or plain for port 80. Of a host without a health path it is a HEAD of `/`, and any status below 500 will do.
  case http
  /// An echo request of ICMP. It shows that the machine is there, whatever runs on it, and many networks drop it: a failure
  /// is told, but never held against the endpoint.
  case icmp
}
