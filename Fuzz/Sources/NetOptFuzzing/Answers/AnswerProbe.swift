import NetOpt
import NetOptCore
import NetOptLocking
import NetOptTestSupport
import TestTools
import Synchronization

/// Sends requests to servers on loopback that send the bytes of a test and end the connection.
///
/// Each input has its own host name, so that no state of one input reaches the next. The client is replaced
/// regularly, because it remembers hosts.
final class AnswerProbe: Sendable {
  /// The result of a request.
  enum Outcome: Sendable {
    case answer(ResponseHead, body: [UInt8])
    case failure(NetOptError)
    /// The request did not end.
    case hang
    /// The servers do not work.
    case fault(String)
  }

  /// The probe that all inputs share.
  static let shared = Result { try AnswerProbe() }

  /// Long enough for every input: the servers end the connection after the last byte.
  private static let deadline = Duration.seconds(5)
  private static let patience = Duration.seconds(15)
  private static let mostBytes = 1 << 20
  /// The number of hosts that each client contacts.
  private static let hostsPerClient = 200

  private let server: ScriptServer
  private let secureServer = Locked<Task<HostileServer, any Error>?>(nil)
  private let number = Atomic(0)
  private let clients = Locked<[Bool: (client: NetOptClient, uses: Int)]>([:])

  private init() throws { server = try ScriptServer() }

  /// The result of a request to an HTTP/1.1 server that sends these pieces.
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

  /// The result of the first request on an HTTP/2 connection on which the server sends these frames.
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
