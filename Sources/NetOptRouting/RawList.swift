import FoundationEssentials

/// A list as its JSON has it, before any rule: each member is there, missing, or of another type. So one pass of the
/// decoder serves good lists and bad ones, and all faults are known at its end.
struct RawList: Decodable {
  /// A member of an object.
  enum Field<Value> {
    case missing
    case value(Value)
    case wrongType
  }

  /// The hosts by their names, in the order of these.
  struct Hosts: Decodable {
    let entries: [(name: String, host: Field<Host>)]
  }

  struct Refresh: Decodable {
    let url: Field<String>
    let every: Field<String>
  }

  struct Host: Decodable {
    let port: Field<Int64>
    let health: Field<Health>
    let endpoints: Field<Endpoints>
  }

  struct Health: Decodable {
    let path: Field<String>
    let expect: Field<Int64>
  }

  /// The endpoints of a host. Those beyond the limit are counted, but not read.
  struct Endpoints: Decodable {
    let elements: [Field<Endpoint>]
    let count: Int
  }

  struct Endpoint: Decodable {
    let ip: Field<String>
    let region: Field<String>
    let isp: Field<String>
    let weight: Field<Int64>
  }

  let schema: Field<Int64>
  let serial: Field<Int64>
  let issued: Field<String>
  let expires: Field<String>
  let refresh: Field<Refresh>
  let hosts: Field<Hosts>

  private enum Keys: CodingKey { case schema, serial, issued, expires, refresh, hosts }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Keys.self)
    schema = object.integer(.schema)
    serial = object.integer(.serial)
    issued = object.text(.issued)
    expires = object.text(.expires)
    refresh = object.field(.refresh)
    hosts = object.field(.hosts)
  }
}

extension RawList.Refresh {
  private enum Keys: CodingKey { case url, every }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Keys.self)
    url = object.text(.url)
    every = object.text(.every)
  }
}

extension RawList.Hosts {
  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Name.self)
    entries = object.allKeys.sorted { $0.stringValue < $1.stringValue }.map {
      ($0.stringValue, object.field($0))
    }
  }
}

extension RawList.Host {
  private enum Keys: CodingKey { case port, health, endpoints }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Keys.self)
    port = object.integer(.port)
    health = object.field(.health)
    endpoints = object.field(.endpoints)
  }
}

extension RawList.Health {
  private enum Keys: CodingKey { case path, expect }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Keys.self)
    path = object.text(.path)
    expect = object.integer(.expect)
  }
}

extension RawList.Endpoints {
  /// An element that is read without an error even when it is no endpoint, so that the ones behind it are read too.
  private struct Element: Decodable {
    let endpoint: RawList.Field<RawList.Endpoint>

    init(from decoder: any Decoder) throws {
      do { endpoint = .value(try RawList.Endpoint(from: decoder)) } catch { endpoint = .wrongType }
    }
  }

  init(from decoder: any Decoder) throws {
    var array = try decoder.unkeyedContainer()
    var elements: [RawList.Field<RawList.Endpoint>] = []
    while !array.isAtEnd, elements.count < EndpointList.maximumEndpoints {
      elements.append(try array.decode(Element.self).endpoint)
    }
    self.elements = elements
    count = array.count ?? elements.count
  }
}

extension RawList.Endpoint {
  private enum Keys: CodingKey { case ip, region, isp, weight }

  init(from decoder: any Decoder) throws {
    let object = try decoder.container(keyedBy: Keys.self)
    ip = object.text(.ip)
    region = object.text(.region)
    isp = object.text(.isp)
    weight = object.integer(.weight)
  }
}

extension KeyedDecodingContainer {
  fileprivate func text(_ key: Key) -> RawList.Field<String> {
    field(key) { try decodeIfPresent(String.self, forKey: key) }
  }

  fileprivate func integer(_ key: Key) -> RawList.Field<Int64> {
    field(key) { try decodeIfPresent(Int64.self, forKey: key) }
  }

  fileprivate func field<Value: Decodable>(_ key: Key) -> RawList.Field<Value> {
    field(key) { try decodeIfPresent(Value.self, forKey: key) }
  }

  private func field<Value>(_ key: Key, _ decode: () throws -> Value?) -> RawList.Field<Value> {
    // The text is known to be JSON here: an error says that the value is of another type, or out of its range.
    guard let value = try? decode() else { return contains(key) ? .wrongType : .missing }
    return .value(value)
  }
}
