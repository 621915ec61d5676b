import CCurl

/// The connections on which requests are about to be sent.
///
/// libcurl sends each request with a system call of its own, and each of them would be a packet. While a socket is corked
/// (TCP_CORK, tcp(7)) the kernel gathers them, and sends them when it is not any more. Turning TCP_NODELAY off instead
/// would make them wait for a round trip.
struct Launches {
  private var sockets: [(descriptor: Int32, requests: Int)] = []

  /// A request is to be sent on a connection.
  mutating func add(_ descriptor: Int32) {
    if let index = sockets.firstIndex(where: { $0.descriptor == descriptor }) {
      sockets[index].requests += 1
    } else {
      sockets.append((descriptor, 1))
    }
  }

  /// Has libcurl send the requests.
  mutating func perform(_ send: () -> Void) {
    if sockets.isEmpty { return send() }
    for (descriptor, requests) in sockets where requests > 1 { netopt_cork(descriptor, 1) }
    send()
    // One that was closed meanwhile is no socket any more, or a new one, which is not corked.
    for (descriptor, requests) in sockets where requests > 1 { netopt_cork(descriptor, 0) }
    sockets.removeAll(keepingCapacity: true)
  }
}
