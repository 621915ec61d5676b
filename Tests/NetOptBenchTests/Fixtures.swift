import FoundationEssentials
import NetOptBench
import NetOptCore

/// The values that the tests of this module share: addresses reserved for documentation, settings, and the
/// reports of several kinds of runs.
enum Fixtures {
  static let first = IPAddress(v4: 0xcb00_7107)  // 203.0.113.7
  static let second = IPAddress(v4: 0xcb00_7109)  // 203.0.113.9
  static let third = IPAddress(v4: 0xc633_6404)  // 198.51.100.4
  /// An address whose server has the certificate of another name.
  static let impostor = IPAddress(v4: 0xc000_0242)  // 192.0.2.66

  /// The settings of a run.
  ///
  /// - Parameters:
  ///   - addresses: the targets of the list.
  ///   - dns: whether the run has the DNS target, too.
  static func settings(
    _ addresses: [IPAddress] = [first, second], dns: Bool = true,
    length: BenchLength = .rounds(cold: 6, warm: 6),
    seed: UInt64 = 7
  ) throws -> BenchSettings {
    let request = try NetOptRequest(.get, "https://api.example.com/v1/ping")
    var targets = addresses.map { BenchTarget($0, port: 443) }
    if dns { targets.append(.dns(port: 443)) }
    var settings = BenchSettings(request, targets: targets, seed: seed)
    settings.length = length
    return settings
  }

  /// The circumstances of every run.
  static let context = RunContext(
    startedAt: Date(timeIntervalSince1970: 1_787_392_800), tag: 0x7f3a, version: "0.1.0",
    arguments: ["bench", "--seed=7", "https://api.example.com/v1/ping"],
    host: .init(os: "Linux 6.1.0 x86_64", libcurl: "7.88.1", tls: "OpenSSL 3.0.17", cares: "1.18.1"))

  /// The report of a run whose responses `answer` makes. The run has its own task, so that `answer` can
  /// cancel the run without cancelling the test.
  ///
  /// - Parameter choice: the choice of the start-up probe.
  static func report(
    _ settings: BenchSettings, choice: IPAddress? = first, answer: @escaping FakeBenchClient.Answer
  ) async -> BenchReport {
    let client = FakeBenchClient(
      choice: .success(choice), answers: .success([third, impostor]), answer: answer)
    return await Task {
      await BenchRun(settings, clients: [client], clock: client).report(context)
    }.value
  }

  /// A normal run, except that one address has the certificate of another name and one address fails
  /// sometimes.
  static func usual() async throws -> BenchReport {
    var settings = try settings([first, second, third, impostor], length: .rounds(cold: 10, warm: 80))
    settings.targets[0] = BenchTarget(first, port: 443, region: "cn-north")
    return await report(settings, choice: second) { request, number throws(NetOptError) in
      if request.target == impostor.description {
        throw .leg(.certificateName(presented: ["*.portal.lan"]), .certificateName)
      }
      if request.target == third.description, number > 0, number % 30 == 0 {
        throw .leg(.reset, .receiveFailed)
      }
      let spread = Double(number % 10) / 10
      let isCold = request.options.connection == .fresh
      let wait: Double =
        switch request.target {
        case first.description: 24.1
        case second.description: 24.2
        case third.description: 29.6
        default: 29.5
        }
      return .answer(
        request,
        isCold
          ? .cold(dns: request.target == "dns" ? 14 : 0, wait: wait + spread) : .warm(wait + spread))
    }
  }

  /// A run without samples, because every target refuses the connection.
  static func dead() async throws -> BenchReport {
    await report(try settings()) { _, _ throws(NetOptError) in throw .leg(.refused) }
  }

  /// A run that is stopped in the third warm round.
  static func interrupted() async throws -> BenchReport {
    await report(try settings([first], length: .rounds(cold: 6, warm: 80))) { request, number in
      // The first request, 6 cold rounds, 2 warm-up rounds and 2 measured rounds precede the stop.
      if number == 1 + 6 + 2 + 2 { withUnsafeCurrentTask { $0?.cancel() } }
      return .answer(request)
    }
  }

  /// A run in which every request after a target's first request times out.
  static func failing() async throws -> BenchReport {
    await report(try settings([first])) { request, number throws(NetOptError) in
      if number > 0 { throw NetOptError(.timeout, phase: .receive, "too slow") }
      return .answer(request)
    }
  }
}
