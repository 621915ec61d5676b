import FoundationEssentials
import NetOpt
import NetOptCore
import NetOptCrypto
import NetOptEngine
import NetOptRouting
import NetOptSigning

/// The rules for formats: a parsed value can be written, and parsing the written text gives an equal value.
/// Each function checks one input, and returns a description of the broken rule, or `nil` when all rules
/// hold.
enum FormatRules {
  /// Checks a structured field as an item, a list and a dictionary.
  static func structuredField(_ input: [UInt8]) -> String? {
    if let item = try? StructuredFieldParser.item(input) {
      let again = try? StructuredFieldParser.item(StructuredFieldSerializer.item(item).utf8)
      if again != item { return "the item is another one when it is written and read" }
    }
    if let list = try? StructuredFieldParser.list(input) {
      let again = try? StructuredFieldParser.list(StructuredFieldSerializer.list(list).utf8)
      if again != list { return "the list is another one when it is written and read" }
    }
    if let dictionary = try? StructuredFieldParser.dictionary(input) {
      let again = try? StructuredFieldParser.dictionary(StructuredFieldSerializer.dictionary(dictionary).utf8)
      if again != dictionary { return "the dictionary is another one when it is written and read" }
    }
    return nil
  }

  /// Checks a key ring. Reading it fetches no secrets from the environment or from commands.
  static func keyRing(_ input: [UInt8]) -> String? {
    guard let ring = try? KeyRing(json: SecretBytes(copying: input)) else { return nil }
    for key in ring.keys {
      if ring[key.id] !== key { return "the key \(key.id) is not found by its id" }
      if let from = key.notBefore, let until = key.notAfter, from > until {
        return "\(key.id) is never valid"
      }
    }
    return nil
  }

  /// Tests the check of names in DNS messages: when it accepts a message, it must accept every truncated form
  /// of the message too. Whether a message is truncated is for c-ares to judge.
  static func dnsMessage(_ input: [UInt8]) -> String? {
    guard DNSMessage.hasBoundedNames(input.span) else { return nil }
    for count in stride(from: 12, to: input.count, by: max(1, input.count / 64)) {
      if !DNSMessage.hasBoundedNames(input.span.extracting(..<count)) {
        return "the first \(count) octets of a message are refused, and the message is not"
      }
    }
    return nil
  }

  /// Checks an endpoint list: the reader returns either a list or its faults.
  static func list(_ input: [UInt8]) -> String? {
    let rules = ListRules(now: Date(timeIntervalSince1970: 1_780_000_000))
    let (list, faults) = EndpointList.check(input, rules: rules)
    if (list == nil) == faults.isEmpty { return "there is a list and faults, or neither" }
    // The reader reports at most 100 faults, and then that there are more.
    if faults.count > 101 { return "there are \(faults.count) faults" }
    let outline = input.withUnsafeBytes { JSONReader.read($0, keys: .sameBytes, mostDuplicates: 0) }
    guard outline.fault == nil else { return list == nil ? nil : "there is a list that is no JSON" }
    // Foundation's decoder is less strict than netopt's reader, so it must accept any JSON that the reader
    // accepts.
    if (try? JSONDecoder().decode(AnyJSON.self, from: Data(input))) == nil {
      return "the reader says that it is JSON, the decoder that it is not"
    }
    return nil
  }

  /// Decodes from any JSON value.
  private struct AnyJSON: Decodable {
    init(from decoder: any Decoder) throws {}
  }

  /// Checks a configuration file: the reader returns a configuration that reading the file again returns too,
  /// or faults with their places.
  static func configuration(_ input: [UInt8]) -> String? {
    let environment = [
      "PROXY": "http://user:secret-of-the-proxy@proxy.test", "PHRASE": "secret-of-the-key",
      "PASSWORD": "secret-of-the-user", "TOKEN": "secret-of-the-app",
    ]
    let read = { ConfigurationFile(input, folder: "/nonexistent", environment: environment) }
    let file = read()
    if "\(file.faults)\(file.changes)".contains("secret-of-the") { return "a report has a secret" }
    if file.faultCount < file.faults.count || file.faults.count > 100 { return "the faults are miscounted" }
    if file.faults.contains(where: { !$0.path.hasPrefix("$") || $0.message.isEmpty }) {
      return "a fault has no path or no message"
    }
    if file.changes != read().changes { return "the file is another one when it is read again" }
    return nil
  }

  /// Checks an input that may be a signature, a public key or a secret key of minisign.
  static func minisign(_ input: [UInt8]) -> String? {
    if let signature = try? MinisignSignature(input, file: "input") {
      let again = try? MinisignSignature(Array(signature.text.utf8), file: "input")
      if again != signature { return "the signature is another one when it is written and read" }
    }
    if let text = String(validating: input, as: UTF8.self), let key = try? MinisignPublicKey(text) {
      if let signature = try? MinisignSignature(input, file: "input"),
        (try? signature.verify(input, of: "input", by: [key])) != nil
      {
        return "a file is its own signature"
      }
    }
    do {
      _ = try MinisignSecretKey(input, file: "input") { () throws(NetOptError) in
        throw NetOptError(.cancelled, phase: .list, "nobody is asked")
      }
    } catch {
      if error.description.isEmpty { return "an error says nothing" }
    }
    return nil
  }

  /// Checks a saved ranking.
  static func history(_ input: [UInt8]) -> String? {
    guard let history = try? RouteHistory(json: input, network: "n") else { return nil }
    guard let again = try? RouteHistory(json: history.json(network: "n").bytes(), network: "n") else {
      return "a history that was written cannot be read"
    }
    if again.json(network: "n").bytes() != history.json(network: "n").bytes() {
      return "the history is another one when it is written and read"
    }
    return nil
  }
}
