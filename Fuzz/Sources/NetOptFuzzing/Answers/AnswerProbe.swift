import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// Sends the requests for the fuzz targets `heads`, `chunks` and `frames`. A server on loopback responds to
/// each request with the bytes of one fuzz input, and then ends the connection.
///
/// Each request has its own host name, so that no state of one input affects the next. A client remembers
/// every host, so a new client replaces it after `hostsPerClient` requests.
final class AnswerProbe: Sendable {
  /// How a request ended.
  enum Outcome: Sendable {
    /// The client delivered a response with its whole body.
    case answer(ResponseHead, body: [UInt8])
    /// The call, or reading its body, failed.
    case failure(NetOptError)
    /// The call did not end within `patience`, although its deadline is earlier.
    case hang
    /// The request could not be made: a server, the client or the URL does not work. The text says why.
    case fault(String)
  }

  /// The probe that all inputs share.
  static let shared = Result { try AnswerProbe() }

  /// The time limit of each call. No call should reach it, because the servers end the connection after the
  /// last byte.
  private static let deadline = Duration.seconds(5)
  /// How long the probe waits for a call to end before it reports `hang`.
  private static let patience = Duration.seconds(15)
  /// The maximum size of a body in bytes.
  private static let mostBytes = 1 << 20
  /// The number of hosts that each client contacts.
  private static let hostsPerClient = 200

  /// The HTTP/1.1 server. The HTTP/2 server is `HostileServer.shared`.
  private let server: ScriptServer
  /// The number of the last request, which is a part of its host name.
  private let number = Atomic(0)
  /// The clients in use, with the number of requests that each has got. The key is true for requests over
  /// TLS.
  private let clients = Locked<[Bool: (client: NetOptClient, uses: Int)]>([:])

  private init() throws { server = try ScriptServer() }

  /// Sends a request to the HTTP/1.1 server and returns how it ended. Blocks the calling thread.
  ///
  /// - Parameter pieces: the bytes of the response, in the pieces in which the server sends them.
  func outcome(ofPieces pieces: [[UInt8]]) -> Outcome {
    let number = number.wrappingAdd(1, ordering: .relaxed).newValue
    let target = "/\(number)"
    server.set(pieces, for: target)
    defer { server.forget(target) }
    let (endpoint, server) = (server.endpoint, self)
    return Patience.blockingOutcome {
      await server.ask("http://host-\(number).fuzz.test:\(endpoint.port)\(target)", endpoint, nil)
    }
  }

  /// Sends the first request of a new connection to the HTTP/2 server and returns how it ended. Blocks the
  /// calling thread.
  ///
  /// - Parameter frames: the bytes that the server sends after its SETTINGS.
  func outcome(ofFrames frames: [UInt8]) -> Outcome {
    let number = number.wrappingAdd(1, ordering: .relaxed).newValue
    let probe = self
    return Patience.blockingOutcome {
      do {
        let server = try await HostileServer.shared.value
        let host = "h2-script--fuzz-\(number).hostile.test"
        try await server.setScript(frames, of: host)
        let url = "https://\(host):\(server.secure.port)/broken?q=\(number)"
        return await probe.ask(url, server.secure, server.authorityFile)
      } catch {
        return .fault("\(error)")
      }
    }
  }

  /// Sends a GET request.
  ///
  /// - Parameter authorityFile: the path of the file with the certificate authority of the server; `nil` for
  ///   a server without TLS.
  private func ask(_ url: String, _ endpoint: IPEndpoint, _ authorityFile: String?) async -> Outcome {
    do {
      var request = try NetOptRequest(.get, url)
      request.options.routing = .pinned(endpoint.address)
      request.options.timeout = Self.deadline
      request.options.maxAttempts = 1
      request.options.maxRedirects = 0
      request.options.decompress = false
      let client = try await client(authorityFile)
      let asked = request
      return await Patience.outcome(within: Self.patience) { await Self.outcome(of: asked, by: client) }
        ?? .hang
    } catch {
      return .fault("\(error)")
    }
  }

  private static func outcome(of request: NetOptRequest, by client: NetOptClient) async -> Outcome {
    do throws(NetOptError) {
      let response = try await client.execute(request)
      return .answer(response.head, body: try await response.body.collect(upTo: mostBytes))
    } catch {
      return .failure(error)
    }
  }

  /// Returns the client in use, or a new one when there is none or it has got `hostsPerClient` requests.
  private func client(_ authorityFile: String?) async throws -> NetOptClient {
    let isSecure = authorityFile != nil
    let (known, old): (NetOptClient?, NetOptClient?) = clients.withLock { clients in
      guard let (client, uses) = clients[isSecure] else { return (nil, nil) }
      if uses >= Self.hostsPerClient {
        clients[isSecure] = nil
        return (nil, client)
      }
      clients[isSecure] = (client, uses + 1)
      return (client, nil)
    }
    if let known { return known }
    if let old { await old.shutdown() }
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    if let authorityFile { configuration.tls.caFile = authorityFile }
    let client = try NetOptClient(configuration)
    clients.withLock { $0[isSecure] = (client, 1) }
    return client
  }
}
