// Limits how much libcurl reads of a proxy's response to CONNECT (docs/adr/0023).

extension Transfer {
  /// Counts a call of the progress callback. While libcurl reads a proxy's response to CONNECT, each call
  /// stands for one byte. libcurl reads the response byte by byte as long as data comes, keeps every field,
  /// and delivers nothing. So netopt limits the response by this count.
  ///
  /// - Returns: whether libcurl may continue.
  func mayContinueTunnel() -> Bool {
    if let tunnelReads { self.tunnelReads = tunnelReads + 1 }
    return !hasEndlessTunnel
  }

  /// Ends the count of `mayContinueTunnel`, because a connection is ready: the leg's first connection, or one
  /// on which libcurl sends the request again.
  func endTunnelReads() { tunnelReads = nil }

  /// Whether libcurl is opening a connection: the first one, or one for sending the request again.
  var isConnecting: Bool { tunnelReads != nil }

  /// Whether the response to CONNECT is longer than `ProxyRefusal.mostRead` bytes.
  var hasEndlessTunnel: Bool { (tunnelReads ?? 0) > ProxyRefusal.mostRead }
}
