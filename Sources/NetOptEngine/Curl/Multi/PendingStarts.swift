import CCurl

/// The connections on which requests are about to be sent.
///
/// libcurl writes each request with a system call of its own, and the kernel would send each one in a packet
/// of its own. While a socket is corked (TCP_CORK, tcp(7)), the kernel gathers the requests. It sends them
/// together when the socket is uncorked. If netopt turned TCP_NODELAY off instead, the requests would wait
/// for a round trip.
struct PendingStarts {
  /// The sockets of the connections, with the number of requests about to be sent on each socket.
  private var sockets: [(descriptor: Int32, requests: Int)] = []

  /// Adds a request that is about to be sent on a connection.
  mutating func add(_ descriptor: Int32) {
    if let index = sockets.firstIndex(where: { $0.descriptor == descriptor }) {
      sockets[index].requests += 1
    } else {
      sockets.append((descriptor, 1))
    }
  }

  /// Makes libcurl send the requests, and forgets them. Corks the sockets on which more than one request is
  /// sent.
  ///
  /// - Parameter send: calls libcurl, which sends the requests.
  mutating func perform(_ send: () -> Void) {
    if sockets.isEmpty { return send() }
    for (descriptor, requests) in sockets where requests > 1 { netopt_cork(descriptor, 1) }
    send()
    // If a socket was closed meanwhile, this does no harm: the call fails, or the number belongs to a new
    // socket, which is not corked.
    for (descriptor, requests) in sockets where requests > 1 { netopt_cork(descriptor, 0) }
    sockets.removeAll(keepingCapacity: true)
  }
}
