import CCurl
import Glibc
import NetOptCore

/// Why the gate refuses the connection that libcurl gave a transfer. No byte of the request was written.
enum GateRefusal: Hashable {
  /// The connection speaks HTTP/1.1 and carries another transfer.
  case busy
  /// A connection from the pool must not carry this request. It belongs to another bundle
  /// (`LiveConnection.bundle`), has ended, or was idle for too long. Or bytes that no request asked for have
  /// arrived or may still arrive. Such bytes must not be taken for a response (RFC 9112, section 9.2).
  case stale
  /// The peer sent data on a new connection before the request.
  case unsolicited
  /// The peer ended a new connection before the request.
  case ended
  /// The server announced the end of the connection (GOAWAY).
  case leaving
  /// netopt gave the connection up (`LiveConnection.isGivenUp`): the server went silent on it, or netopt
  /// ended it.
  case givenUp

  /// Whether the leg may continue on another open connection. If not, it opens a new one.
  var mayReuseOther: Bool { self == .leaving || self == .givenUp }

  /// Whether the leg continues on another connection to the same endpoint. If not, the leg has failed.
  var mayReconnect: Bool {
    switch self {
    case .busy, .stale, .leaving, .givenUp: true
    case .unsolicited, .ended: false
    }
  }
}

// The gate. libcurl calls it when the connection is ready and no byte of the request was written
// (CURLOPT_PREREQFUNCTION(3)).

extension Transfer {
  /// Runs the gate on the connection that is ready: checks the connection and asks the race.
  ///
  /// - Parameter ends: the addresses and ports of the connection, which identify it.
  /// - Returns: whether the request is sent on the connection.
  func passGate(between ends: ConnectionEnds) -> Bool {
    let now = exchange.now()
    endTunnelReads()
    if verdict == .send {
      // libcurl is about to send the request again. It does not say why.
      lastLoss = loss
      _ = withdrawRequest()
    }
    leaveConnection()
    localPort = ends.localPort
    let connection = callbackState.live.connection(opened: descriptor, ends)
    self.connection = connection
    // Before a resend, the transfer forgets what it knows of the previous connection.
    readyAt = now
    sentAt = nil
    // What netopt has learned about a connection stays true. On an HTTP/2 connection the gate needs nothing
    // else, so it does not ask TLS again.
    let isKnown = connection?.reportsTLSEnd == true && connection?.isMultiplexed == true
    if let connection, !connection.hasCarried, connection.proxyTLS == nil { connection.proxyTLS = proxyTLS }
    let tls = isKnown || !isEncrypted ? nil : TLSConnection(of: easy) ?? TLSConnection(connection?.proxyTLS)
    if isKnown {
      tlsVersion = connection?.tlsVersion
      speaksHTTP2 = true
    } else {
      tlsVersion = tls?.version
      learnVersion(from: tls, at: now)
    }
    socket = descriptor.flatMap { SocketReport(of: $0) }
    callbackState.ready.append(self)
    refusal = exchange.maySend(leg) ? refusalReason(with: tls, at: now) : nil
    guard refusal == nil else { return false }
    // Before a resend, the transfer drops the part of a response that has come. A server may send such a part
    // and then refuse the stream (RFC 9113, section 8.7). After a complete head, a resend is not possible.
    guard exchange.sends == 0 || restartAnswer() else { return false }
    let verdict = exchange.gate(leg)
    self.verdict = verdict
    if verdict == .send {
      exchange.sends += 1
      connection?.hasCarried = true
      if let connection, connection.bundle == nil { connection.bundle = connectionClass.bundle }
      streamReader = connection?.reader
      streamReader?.budget.streams += 1
      if speaksHTTP2 != true {
        connection?.carrier = self
        connection?.noteRequestSent(tls?.reader)
        // The debug callback then shows folds, chunk sizes, bytes that follow the response in the same read,
        // and the bytes of the request that were written.
        easy.isVerbose = true
        easy.ignoresLength = false
      }
      sent = SentRequest(seesWrites: speaksHTTP2 != true)
      if !callbackState.newConnections.isEmpty { callbackState.newConnections.used(localPort) }
    } else if verdict == .release, exchange.plan.isSecure, let descriptor {
      callbackState.newConnections.add(descriptor, localPort: localPort, at: now)
    }
    return verdict == .send
  }

  /// The transfer's connection if netopt gave it up because the server had gone silent; otherwise `nil`.
  var silentConnection: LiveConnection? {
    guard let connection, connection.isSilent else { return nil }
    return connection
  }

  /// Detaches the transfer from its connection.
  func leaveConnection() {
    guard let connection else { return }
    if connection.carrier === self {
      // If the response came before the whole body of the request was sent (RFC 9110, section 10.1.1), the
      // server takes the next bytes on the connection for the rest of this body.
      if !hasSentBody { connection.isTainted = true }
      connection.carrier = nil
      // Makes the kernel acknowledge the response at once. The server's kernel may hold back surplus bytes
      // until the acknowledgement (RFC 896). If the acknowledgement went out with the next request, the
      // surplus bytes would come after the request and be taken for its response.
      if callbackState.live[connection.descriptor] === connection {
        netopt_quick_ack(connection.descriptor)
      }
    }
    streamReader?.budget.streams -= 1
    streamReader = nil
    self.connection = nil
  }

  /// Learns which HTTP version the connection speaks, and keeps the facts in the `LiveConnection`.
  ///
  /// - Parameter tls: the TLS connection; `nil` when there is none or it cannot be examined.
  private func learnVersion(from tls: TLSConnection?, at now: MonotonicInstant) {
    guard exchange.plan.isSecure else {
      speaksHTTP2 = false
      if let tls, let connection, !connection.reportsTLSEnd {
        connection.reportsTLSEnd = tls.report(to: connection)
        connection.tlsVersion = tlsVersion
        connection.tlsReader = tls.reader
      }
      return
    }
    guard let tls else {
      speaksHTTP2 = connection?.isMultiplexed == true ? true : nil
      return
    }
    let isNew = connection.map { !$0.reportsTLSEnd } ?? false
    if let connection, !isNew {
      speaksHTTP2 = connection.isMultiplexed
      return
    }
    let choice = tls.choseHTTP2
    speaksHTTP2 = choice
    guard let connection else { return }
    connection.isMultiplexed = choice
    connection.reportsTLSEnd = tls.report(to: connection)
    // `report` returns true once for each TLS connection, so each handshake counts once.
    if connection.reportsTLSEnd { callbackState.counter.completedHandshake(isResumed: tls.isResumed) }
    connection.tlsVersion = tlsVersion
    connection.tlsReader = tls.reader
    // HTTP/2 assigns all data to streams, so nothing has to watch for unsolicited data.
    if choice {
      tls.endWatch()
      tls.reader?.endSearch()
    }
    if choice, let reader = tls.reader?.lowest {
      reader.isActive = true
      connection.reader = reader
    }
    if connectionClass.offersHTTP2 {
      bundles.recordALPN(of: endpoint, choseHTTP2: choice, in: connectionClass, at: now)
    }
  }

  /// Why the connection must not be used; `nil` when it may be used. Unread data is usually no reason on
  /// HTTP/2, where all data belongs to a stream.
  private func refusalReason(with tls: TLSConnection?, at now: MonotonicInstant) -> GateRefusal? {
    if speaksHTTP2 == true {
      guard let connection else { return nil }
      if connection.isGivenUp { return .givenUp }
      if connection.lastStream != nil { return .leaving }
      // The bytes may be a response on the stream that the request is about to open.
      if let session = connection.session, FrameObserver.hasRest(session), connection.isIdle { return .stale }
      // The unread data may be a response on the stream that the request is about to open. Earlier
      // releases of libcurl have read at least one TLS record by now.
      return CurlLibrary.readsIdleConnectionsSeldom && connection.hasCarried && connection.isIdle
        && connection.hasArrivals ? .stale : nil
    }
    guard let connection else {
      // The connection is unknown, so another transfer may use it. libcurl shares only connections that it
      // takes for HTTP/2.
      return connectionClass.offersHTTP2 && descriptor == nil ? .busy : nil
    }
    // libcurl gives a connection that is in use only to transfers that offer HTTP/2.
    if connectionClass.offersHTTP2, let carrier = connection.carrier, carrier.holdsConnection { return .busy }
    // libcurl 8.21 and later disregards the bundle of plain HTTP through a proxy.
    if let bundle = connection.bundle, bundle != connectionClass.bundle { return .stale }
    if connection.isEnded || connection.isTainted { return .stale }
    if connection.carrier?.hasSentBody == false { return .stale }
    if let quiet = connection.quietUntil, now < quiet { return .stale }
    if connection.hasCarried, let limit = bundles.idleLimit(of: endpoint, at: now),
      let silence = CurlMulti.progress(of: connection.descriptor)?.silence, silence >= limit
    {
      return .stale
    }
    switch connection.arrival(with: tls, isDirect: proxy == nil || !exchange.plan.isSecure) {
    case .nothing: return nil
    case .data: return connection.hasCarried ? .stale : .unsolicited
    case .end: return connection.hasCarried ? .stale : .ended
    }
  }

  /// Whether libcurl has not yet detached the transfer from its connection. libcurl detaches a transfer
  /// before it reports the end of the transfer. Always true without OpenSSL, where netopt cannot tell.
  fileprivate var holdsConnection: Bool { OpenSSL.loaded == nil || TLSConnection(of: easy) != nil }
}

extension LiveConnection {
  /// Whether the connection is known to carry no request.
  var isIdle: Bool {
    isMultiplexed ? reader?.budget.streams == 0 : carrier == nil
  }

  /// Whether the connection has unread data or has ended.
  var hasArrivals: Bool {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, netopt_peek_nonblocking)
    return count >= 0 || errno != EAGAIN && errno != EINTR || reader?.hasBufferedData == true
  }

  /// What arrived on a connection on which no data is expected: nothing, data, or the end of the connection.
  enum Arrival { case nothing, data, end }

  /// Checks whether data or the end has arrived on the connection.
  ///
  /// - Parameters:
  ///   - tls: the TLS connection; `nil` without TLS.
  ///   - isDirect: whether TLS, if there is any, runs directly on the socket.
  func arrival(with tls: TLSConnection?, isDirect: Bool) -> Arrival {
    var byte: UInt8 = 0
    let count = recv(descriptor, &byte, 1, netopt_peek_nonblocking)
    hasUnreadBytes = count > 0
    let hasEnded = count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
    if hasEnded { return .end }
    guard let tls else { return count > 0 ? .data : .nothing }
    // Bytes of TLS need not be data: a peer may send session tickets at any time. So before the first
    // request, bytes that the proxy's TLS connection has buffered do not count. They may be the server's
    // tickets.
    let isBuffered = tls.hasBufferedData || hasCarried && tls.reader?.hasBufferedData == true
    // During a renegotiation, the request cannot be written. Data that arrives before its end would therefore
    // come before the request.
    if tls.isInHandshake { return .data }
    if count < 0, !isBuffered { return .nothing }
    // On a new TLS 1.3 connection, the unread bytes are probably session tickets. libcurl can keep a ticket
    // only if it reads the ticket itself, so the gate leaves the bytes to libcurl. If the bytes turn out to
    // be data, netopt refuses the response (`hasUnsolicitedData`). On a new connection through a proxy, the
    // gate leaves the bytes to libcurl too, because it cannot tell records of the proxy from records of the
    // server.
    if !hasCarried, !isBuffered, !isDirect || tls.version == "TLSv1.3" { return .nothing }
    if isBuffered { return .data }
    guard let hasData = tls.hasUnreadData(on: isDirect ? descriptor : nil) else { return .end }
    return hasData || tls.isInHandshake ? .data : .nothing
  }
}
