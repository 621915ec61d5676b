import FoundationEssentials
import NetOptCore

/// Checks a list that was read from JSON (`RawList`) against the rules for IP lists, and builds the
/// `EndpointList`. Adds every broken rule to `report`. After a fault, the check continues, so that it finds
/// all faults. The caller must then discard the list.
struct ListChecker {
  /// The rule for `issued` and `expires`, in words for users.
  private static let timestamp = "must be an RFC 3339 time in quotes, such as \"2026-11-20T00:00:00Z\""

  private let rules: ListRules
  /// The faults found so far. Includes the faults that were found before the check, when the JSON was read.
  private(set) var report: FaultReport
  /// The number of endpoints in the hosts that were read so far. Counts invalid endpoints too.
  private var endpointCount = 0

  init(_ rules: ListRules, _ report: FaultReport) {
    self.rules = rules
    self.report = report
  }

  /// Builds the list. The result is valid only when `report` has no fault afterwards.
  ///
  /// - Returns: `nil` when the list has another format version than `EndpointList.schemaVersion`. The other
  ///   members of the list are then not checked.
  mutating func list(_ raw: RawList) -> EndpointList? {
    let root = JSONPath()
    switch raw.schema {
    case .value(Int64(EndpointList.schemaVersion)): break
    case .value(let version):
      report.add(
        root.key("schema"), "is \(version), but this program reads version 1; issue the list in version 1")
      return nil
    case .missing: report.add(root.key("schema"), "is missing; write \"schema\": 1")
    case .wrongType: report.add(root.key("schema"), "must be the number 1")
    }
    let serial = integer(
      raw.serial, in: 1...Int64.max, or: nil, root.key("serial"),
      "must be a positive integer that grows with each issue, such as 2026112001")
    let (issued, expires) = validity(raw, root)
    let list = EndpointList(
      serial: serial ?? 1, issued: issued, expires: expires,
      refresh: refresh(raw.refresh, root.key("refresh")),
      hosts: hosts(raw.hosts, root.key("hosts")))
    if endpointCount > EndpointList.maximumEndpoints {
      report.add(
        root.key("hosts"),
        "the list has \(endpointCount) endpoints, more than the limit of \(EndpointList.maximumEndpoints); remove some"
      )
    }
    return list
  }

  // MARK: Validity

  /// Reads `issued` and `expires`. Checks that `expires` is later than `issued` and, unless the rules allow
  /// expired lists, later than the present moment.
  private mutating func validity(_ raw: RawList, _ root: JSONPath) -> (issued: Date?, expires: Date?) {
    let issued = date(raw.issued, root.key("issued"))
    let expires = date(raw.expires, root.key("expires"))
    if let issued, let expires, expires <= issued {
      report.add(root.key("expires"), "must be later than issued")
    } else if let expires, case .value(let text) = raw.expires, rules.now >= expires, !rules.allowExpired {
      report.add(root.key("expires"), "the list expired at \(text); get or issue a newer one")
    }
    return (issued, expires)
  }

  /// Reads a date; `nil` when it is missing or invalid.
  private mutating func date(_ field: RawList.Field<String>, _ path: JSONPath) -> Date? {
    switch field {
    case .missing: return nil
    case .value(let text):
      if let date = Date(rfc3339: text) { return date }
      report.add(path, "\"\(text)\" is not a time; it \(Self.timestamp)")
    case .wrongType: report.add(path, Self.timestamp)
    }
    return nil
  }

  /// Reads `refresh`; `nil` when `refresh` is missing or is not an object, or when its URL is missing or
  /// cannot be read.
  private mutating func refresh(_ field: RawList.Field<RawList.Refresh>, _ path: JSONPath) -> EndpointList
    .Refresh?
  {
    guard let raw = object(field, path, "must be an object with url and every") else { return nil }
    var url: HTTPURL?
    switch raw.url {
    case .missing:
      report.add(path.key("url"), "is missing; name the https URL of the list, or remove refresh")
    case .wrongType: report.add(path.key("url"), "must be an https URL in quotes")
    case .value(let text):
      do throws(NetOptError) {
        url = try HTTPURL(text)
        if url?.origin.scheme != .https { report.add(path.key("url"), "must be an https URL, not http") }
        if let url, !rules.allowPrivateAddresses, Self.isPrivate(url.origin) {
          report.add(
            path.key("url"),
            "leads to \(url.origin.host), which is valid only if private addresses are allowed"
          )
        }
      } catch {
        report.add(path.key("url"), error.message)
      }
    }
    let interval = interval(raw.every, path.key("every"))
    return url.map { EndpointList.Refresh(url: $0, every: interval) }
  }

  /// Whether the name of an origin's host alone shows that the host is not globally reachable. This is so for
  /// an IP address whose scope is not global, for `localhost`, and for the names below `localhost` (RFC 6761,
  /// section 6.3). No name is looked up.
  private static func isPrivate(_ origin: Origin) -> Bool {
    origin.address.map { $0.scope != .global }
      ?? (origin.host == "localhost" || origin.host.hasSuffix(".localhost"))
  }

  /// Reads `every`, the interval at which a client looks for a newer list. Returns the default interval when
  /// `every` is missing or invalid.
  private mutating func interval(_ field: RawList.Field<String>, _ path: JSONPath) -> Duration {
    switch field {
    case .missing: return EndpointList.Refresh.defaultInterval
    case .value(let text):
      if let interval = Duration(interval: text), EndpointList.Refresh.intervals.contains(interval) {
        return interval
      }
      fallthrough
    case .wrongType:
      report.add(
        path, "must be a time from \"60s\" to \"365d\": a number and one of s, m, h, d, such as \"24h\"")
    }
    return EndpointList.Refresh.defaultInterval
  }

  // MARK: Hosts

  /// Reads the hosts. The keys of the result are the normalised host names. The result omits a host whose
  /// value is not an object. When two names are the same after normalisation, the result has the first entry.
  private mutating func hosts(_ field: RawList.Field<RawList.Hosts>, _ path: JSONPath) -> [String: HostEntry]
  {
    var entries: [String: HostEntry] = [:]
    guard case .value(let raw) = field else {
      report.add(path, "must be an object with a host name for each key")
      return entries
    }
    for (name, field) in raw.entries {
      let path = path.key(name)
      let normalized = Origin.normalized(host: name)
      if let fault = Self.fault(ofHost: name) {
        report.add(path, fault)
      } else if entries[normalized] != nil {
        report.add(
          path, "the host \(normalized) is in the list more than once; put all its endpoints in one entry")
      }
      let entry = object(field, path, "must be an object with endpoints").map { host($0, path) }
      entries[normalized] = entries[normalized] ?? entry
    }
    return entries
  }

  /// The rule that a host name breaks, in words for users; `nil` for a valid name.
  private static func fault(ofHost name: String) -> String? {
    if let fault = HTTPURL.hostNameFault(name) { return fault }
    guard IPAddress(Origin.normalized(host: name)) != nil else { return nil }
    return "a host must be a name; a URL with an IP address needs no list"
  }

  /// Reads the entry of one host.
  private mutating func host(_ raw: RawList.Host, _ path: JSONPath) -> HostEntry {
    let port = integer(
      raw.port, in: 1...65_535, or: 443, path.key("port"), "must be an integer from 1 to 65535")
    let health = health(raw.health, path.key("health"))
    let pins = pins(raw.pins, path.key("pins"))
    let endpointsPath = path.key("endpoints")
    guard case .value(let endpoints) = raw.endpoints, endpoints.count > 0 else {
      report.add(
        endpointsPath, "must be an array with at least one endpoint, such as [{\"ip\": \"192.0.2.1\"}]")
      return HostEntry(endpoints: [])
    }
    endpointCount += endpoints.count
    var indices = [IPAddress: Int](minimumCapacity: endpoints.elements.count)
    var listed: [ListedEndpoint] = []
    listed.reserveCapacity(endpoints.elements.count)
    for (index, field) in endpoints.elements.enumerated() {
      guard let endpoint = endpoint(field, endpointsPath, index) else { continue }
      if let other = indices.updateValue(index, forKey: endpoint.address) {
        report.add(
          endpointsPath.index(index).key("ip"),
          "\(endpoint.address) is also endpoint \(other) of this host; remove one of them")
      }
      listed.append(endpoint)
    }
    return HostEntry(port: UInt16(port ?? 443), health: health, pins: pins, endpoints: listed)
  }

  /// Reads the pins of a host. An invalid pin is a fault: without it, the host would be less protected than
  /// the list says.
  private mutating func pins(_ field: RawList.Field<[RawList.Field<String>]>, _ path: JSONPath)
    -> [PublicKeyPin]
  {
    let rule = "must be an array of 1 to \(HostEntry.mostPins) pins, such as [\"sha256/…\", \"sha256/…\"]"
    guard case .value(let elements) = field, (1...HostEntry.mostPins).contains(elements.count) else {
      if case .missing = field { return [] }
      report.add(path, rule)
      return []
    }
    var pins: [PublicKeyPin] = []
    for (index, element) in elements.enumerated() {
      guard case .value(let text) = element, let pin = PublicKeyPin(text) else {
        report.add(
          path.index(index),
          "must be sha256/ and the SHA-256 hash of a public key in base64, 44 characters; `openssl x509 -in CERT -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64` prints it"
        )
        continue
      }
      if pins.contains(pin) { report.add(path.index(index), "\(pin) is in pins more than once; remove one") }
      pins.append(pin)
    }
    return pins
  }

  /// Reads the health check of a host. `nil` when it is missing or is not an object, or when its path is
  /// missing or invalid.
  private mutating func health(_ field: RawList.Field<RawList.Health>, _ path: JSONPath) -> HostEntry.Health?
  {
    guard let raw = object(field, path, "must be an object with path and expect") else { return nil }
    let expect = integer(
      raw.expect, in: 100...599, or: 200, path.key("expect"), "must be a status code from 100 to 599")
    guard case .value(let target) = raw.path, target.hasPrefix("/"),
      target.utf8.allSatisfy({ (0x21..<0x7f).contains($0) })
    else {
      report.add(
        path.key("path"), "must be a path that begins with /, percent-encoded where it is not plain ASCII")
      return nil
    }
    return HostEntry.Health(path: target, expect: Int(expect ?? 200))
  }

  // MARK: Endpoints

  /// Reads an endpoint of a host. `nil` when it is not an object, or when its address is missing or invalid.
  ///
  /// - Parameters:
  ///   - path: the place of the array of endpoints.
  ///   - index: the index of the endpoint in this array.
  private mutating func endpoint(
    _ field: RawList.Field<RawList.Endpoint>, _ path: JSONPath, _ index: Int
  ) -> ListedEndpoint? {
    guard case .value(let raw) = field else {
      report.add(path.index(index), "must be an object such as {\"ip\": \"192.0.2.1\"}")
      return nil
    }
    let weights = ListedEndpoint.weights
    let weight = integer(
      raw.weight, in: Int64(weights.lowerBound)...Int64(weights.upperBound),
      or: Int64(ListedEndpoint.defaultWeight), path.index(index).key("weight"),
      "must be an integer from \(weights.lowerBound) to \(weights.upperBound)")
    let region = label(raw.region, path.index(index).key("region"))
    let isp = label(raw.isp, path.index(index).key("isp"))
    guard let address = address(raw.ip, path.index(index).key("ip")) else { return nil }
    return ListedEndpoint(
      address, region: region, isp: isp, weight: Int(weight ?? Int64(ListedEndpoint.defaultWeight)))
  }

  /// Reads the address of an endpoint. `nil` when it is missing or invalid, or when it is not globally
  /// reachable and the rules allow only global addresses.
  private mutating func address(_ field: RawList.Field<String>, _ path: @autoclosure () -> JSONPath)
    -> IPAddress?
  {
    switch field {
    case .missing: report.add(path(), "is missing; every endpoint has an address")
    case .wrongType: report.add(path(), "must be an IP address in quotes")
    case .value(let text):
      guard let address = IPAddress(text) else {
        report.add(
          path(), "\"\(text)\" is not an IP address; write it like 192.0.2.1 or 2001:db8::1, without a port")
        return nil
      }
      if address.scope == .global || rules.allowPrivateAddresses { return address }
      report.add(
        path(),
        "\(address) is a \(address.scope.rawValue) address, which is valid only if private "
          + "addresses are allowed")
    }
    return nil
  }

  /// Reads the name of a region or provider; `nil` when it is missing or invalid.
  private mutating func label(_ field: RawList.Field<String>, _ path: @autoclosure () -> JSONPath) -> String?
  {
    switch field {
    case .missing: return nil
    case .value(let text):
      if Self.isLabel(text) { return text }
      fallthrough
    case .wrongType:
      report.add(path(), "must be a name in quotes, without control characters; or leave it out")
    }
    return nil
  }

  /// Whether a text can be the name of a region or provider: it is not empty and has no control characters.
  private static func isLabel(_ text: String) -> Bool {
    if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) { return !text.isEmpty }
    return text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
  }

  // MARK: Values

  /// Returns the value of a member that may be missing and otherwise must be an object. `nil` when the member
  /// is missing. When the member has another type, reports `rule` and returns `nil`.
  private mutating func object<Value>(
    _ field: RawList.Field<Value>, _ path: @autoclosure () -> JSONPath, _ rule: @autoclosure () -> String
  ) -> Value? {
    switch field {
    case .missing: return nil
    case .value(let value): return value
    case .wrongType:
      report.add(path(), rule())
      return nil
    }
  }

  /// Reads an integer within a range. Returns `nil` and reports `rule` when the integer is invalid, and when
  /// it is missing and has no fallback.
  ///
  /// - Parameter fallback: the value for a missing integer; `nil` when the integer must not be missing.
  private mutating func integer(
    _ field: RawList.Field<Int64>, in range: ClosedRange<Int64>, or fallback: Int64?,
    _ path: @autoclosure () -> JSONPath, _ rule: @autoclosure () -> String
  ) -> Int64? {
    switch field {
    case .missing where fallback != nil: return fallback
    case .value(let value) where range.contains(value): return value
    default:
      report.add(path(), rule())
      return nil
    }
  }
}

extension Duration {
  /// Reads a number and a unit: `90s`, `30m`, `24h`, `7d`. `nil` for any other text.
  fileprivate init?(interval text: String) {
    guard let number = Int64(text.dropLast()), (0...9_999_999).contains(number), text.first != "+" else {
      return nil
    }
    switch text.last {
    case "s": self = .seconds(number)
    case "m": self = .seconds(number * 60)
    case "h": self = .seconds(number * 3600)
    case "d": self = .seconds(number * 86_400)
    default: return nil
    }
  }
}
