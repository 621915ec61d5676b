import FoundationEssentials
package import NetOptCore

// The file format of a history: docs/schemas/ranking.schema.json.

extension RouteHistory {
  /// The maximum size of a file in bytes: 4 MiB.
  package static let maximumBytes = 4 << 20
  /// The maximum number of hosts in a file.
  static let mostHosts = 1024
  /// The maximum number of endpoints in a file, all hosts together.
  static let mostEndpoints = 10_000

  /// The history as the JSON value that a file holds.
  ///
  /// - Parameter network: the fingerprint of the network to which the history belongs.
  package func json(network: String) -> JSONValue {
    // When there are too many hosts or endpoints, the hosts with the latest `learned` stay.
    var room = Self.mostEndpoints
    let latest = hosts.sorted { $0.learned > $1.learned }.prefix(Self.mostHosts).prefix { host in
      room -= host.endpoints.count
      return room >= 0
    }
    let kept = latest.sorted { ($0.origin.host, $0.origin.port) < ($1.origin.host, $1.origin.port) }
    return [
      "schema_version": 1, "network": .string(network), "hosts": .array(kept.map(Self.json)),
    ]
  }

  private static func json(_ host: Host) -> JSONValue {
    [
      "scheme": .string(host.origin.scheme.rawValue), "host": .string(host.origin.host),
      "port": .integer(Int64(host.origin.port)), "learned": .string(host.learned.formatted(.iso8601)),
      "leader": .optional(host.leader?.description),
      "endpoints": .array(
        host.endpoints.map { endpoint in
          [
            "ip": .string(endpoint.address.description), "ready_us": json(endpoint.ready),
            "rtt_us": json(endpoint.roundTrip),
          ]
        }),
    ]
  }

  private static func json(_ estimate: Estimate?) -> JSONValue {
    guard let estimate else { return .null }
    return [.microseconds(estimate.smoothed), .microseconds(estimate.variation)]
  }

  /// Why a file cannot be used.
  package struct Fault: Error, Hashable {
    /// What is wrong with the file, in words for users.
    package let reason: String
  }

  /// Reads a file.
  ///
  /// - Parameter network: the fingerprint of the network to which the file must belong.
  package init(json bytes: [UInt8], network: String) throws(Fault) {
    guard bytes.count <= Self.maximumBytes else { throw Fault(reason: "it is larger than 4 MiB") }
    if let fault = SlowText.fault(ofJSON: bytes) { throw Fault(reason: fault) }
    let file: File
    do { file = try JSONDecoder().decode(File.self, from: Data(bytes)) } catch {
      throw Fault(reason: "it is not in the JSON format that netopt writes")
    }
    guard file.schema_version == 1 else {
      throw Fault(reason: "its schema_version is \(file.schema_version), but this version of netopt reads 1")
    }
    guard file.network == network else { throw Fault(reason: "it belongs to another network") }
    guard file.hosts.count <= Self.mostHosts,
      file.hosts.reduce(0, { $0 + $1.endpoints.count }) <= Self.mostEndpoints
    else { throw Fault(reason: "it has more hosts or endpoints than netopt writes") }
    var hosts: [Host] = []
    for host in file.hosts {
      guard let value = host.value else { throw Fault(reason: "its data about \(host.host) is invalid") }
      hosts.append(value)
    }
    self.init(hosts: hosts)
  }
}

/// The format of the file.
private struct File: Decodable {
  /// A host as the file has it, before its values are checked.
  struct Host: Decodable {
    let scheme: String
    let host: String
    let port: UInt16
    /// A date and time in the format of RFC 3339.
    let learned: String
    /// The IP address of the endpoint in use.
    let leader: String?
    let endpoints: [Endpoint]

    /// The host; `nil` when a value is invalid.
    var value: RouteHistory.Host? {
      guard let scheme = Origin.Scheme(rawValue: scheme), HTTPURL.hostNameFault(host) == nil, port > 0,
        // Nothing was learned before 1970, and calendars differ in how they write such dates.
        let learned = Date(rfc3339: learned), learned.timeIntervalSince1970 >= 0
      else { return nil }
      var known: [RouteHistory.Endpoint] = []
      for endpoint in endpoints {
        guard let value = endpoint.value else { return nil }
        known.append(value)
      }
      return RouteHistory.Host(
        Origin(scheme, host: host, port: port), learned: learned, leader: leader.flatMap { IPAddress($0) },
        endpoints: known)
    }
  }

  /// An endpoint as the file has it, before its values are checked.
  struct Endpoint: Decodable {
    let ip: String
    /// Two times in microseconds: the smoothed time and its variation.
    let ready_us: [Int64]?
    /// Two times in microseconds, as in `ready_us`.
    let rtt_us: [Int64]?

    /// The endpoint; `nil` when a value is invalid.
    var value: RouteHistory.Endpoint? {
      guard let address = IPAddress(ip), ready_us == nil || Self.estimate(ready_us) != nil,
        rtt_us == nil || Self.estimate(rtt_us) != nil
      else { return nil }
      return RouteHistory.Endpoint(
        address, ready: Self.estimate(ready_us), roundTrip: Self.estimate(rtt_us))
    }

    /// The estimate from its two times in microseconds; `nil` when they are invalid.
    private static func estimate(_ times: [Int64]?) -> RouteHistory.Estimate? {
      // No connection attempt takes an hour.
      guard let times, times.count == 2, times.allSatisfy({ (0...3_600_000_000).contains($0) }) else {
        return nil
      }
      return RouteHistory.Estimate(smoothed: .microseconds(times[0]), variation: .microseconds(times[1]))
    }
  }

  let schema_version: Int
  let network: String
  let hosts: [Host]
}
