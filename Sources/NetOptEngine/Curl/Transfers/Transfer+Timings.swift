import NetOptCore

extension Transfer {
  /// When the TLS handshake with the server was done, if this leg opened the connection; otherwise `nil`.
  /// This is the moment when the transfer reached the gate, which libcurl calls right after the handshake.
  var securedAt: MonotonicInstant? {
    descriptor != nil && exchange.plan.isSecure ? readyAt : nil
  }

  /// The durations of the phases of the call so far. Each phase ends when the next one begins, so no time is
  /// counted twice or lost.
  ///
  /// - Parameter lookUp: how long the DNS lookup for the leg took; zero without one.
  func timings(until now: MonotonicInstant, lookUp: Duration) -> Timings {
    let ready = readyAt ?? now
    let opened = min(openedAt ?? ready, ready)
    let connected = min(max(connectedAt ?? opened, opened), ready)
    let first = max(firstByteAt ?? now, ready)
    let sent = min(max(sentAt ?? ready, ready), first)
    func nanoseconds(from a: MonotonicInstant, to b: MonotonicInstant) -> Int64 {
      b.nanoseconds - a.nanoseconds
    }
    var timings = Timings()
    timings.dnsNanoseconds = lookUp.nanoseconds
    timings.queueNanoseconds =
      nanoseconds(from: exchange.context.started, to: opened) - timings.dnsNanoseconds
    if exchange.plan.isSecure {
      timings.connectNanoseconds = nanoseconds(from: opened, to: connected)
      timings.tlsNanoseconds = nanoseconds(from: connected, to: ready)
    } else {
      timings.connectNanoseconds = nanoseconds(from: opened, to: ready)
    }
    timings.sendNanoseconds = nanoseconds(from: ready, to: sent)
    timings.waitNanoseconds = nanoseconds(from: sent, to: first)
    timings.transferNanoseconds = nanoseconds(from: first, to: max(now, first))
    return timings
  }
}
