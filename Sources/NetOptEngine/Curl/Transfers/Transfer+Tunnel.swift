// Limits how much libcurl reads of a proxy's response to CONNECT (docs/adr/0023).

extension Transfer {
  /// Counts one read of a proxy's response to CONNECT. libcurl reads the response byte by byte as long as
  /// data comes, keeps every field, and delivers nothing.
  ///
  /// - Returns: whether libcurl may continue.
  func mayContinueTunnel() -> Bool {
    if let tunnelReads { self.tunnelReads = tunnelReads + 1 }
    return !hasEndlessTunnel
  }

  /// Ends the count of reads, because a connection is ready: the leg's first connection, or one that libcurl
  /// opened to send the request again.
  func endTunnelReads() { tunnelReads = nil }

  /// Whether libcurl is opening a connection: the first one, or one for sending the request again.
  var isConnecting: Bool { tunnelReads != nil }

  /// Whether the response to CONNECT was longer than `ProxyRefusal.mostRead`.
  var hasEndlessTunnel: Bool { (tunnelReads ?? 0) > ProxyRefusal.mostRead }
}
