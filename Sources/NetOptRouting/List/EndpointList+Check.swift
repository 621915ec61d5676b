package import NetOptCore

extension EndpointList {
  /// Reads a list and checks every rule, so that the caller learns all faults at once.
  ///
  /// - Parameters:
  ///   - bytes: the list as JSON in UTF-8.
  ///   - rules: the caller's requirements, in addition to the rules of the format.
  /// - Returns: the list and no faults, or `nil` and the faults. Of more than 100 faults, the result has the
  ///   first 100 and one more entry with the number of the others.
  package static func check(
    _ bytes: [UInt8], rules: ListRules
  ) -> (list: EndpointList?, faults: [ListFault]) {
    let (list, report) = read(bytes, rules)
    return (list, report.faults)
  }

  /// Makes a list from its JSON text. Throws when the text breaks a rule.
  ///
  /// - Parameters:
  ///   - bytes: the list as JSON in UTF-8.
  ///   - file: the name of the list in the error, such as the path of its file.
  ///   - rules: the caller's requirements, in addition to the rules of the format.
  /// - Throws: `NetOptError.Code.invalidList` with the file, the place and rule of the first fault, and the
  ///   number of further faults.
  package init(_ bytes: [UInt8], file: String, rules: ListRules) throws(NetOptError) {
    let (list, report) = Self.read(bytes, rules)
    guard let list else {
      let others = report.count - 1
      let first = report.kept.first?.description ?? "it cannot be read"
      let more = others > 0 ? " (and \(others) more \(others == 1 ? "fault" : "faults"))" : ""
      throw NetOptError(.invalidList, phase: .list, "\(file): \(first)\(more)")
    }
    self = list
  }

  /// Reads a list. The list is `nil` when the report has a fault.
  private static func read(_ bytes: [UInt8], _ rules: ListRules) -> (EndpointList?, FaultReport) {
    var report = FaultReport()
    if bytes.count > maximumBytes {
      report.add(
        JSONPath(),
        "the list has \(bytes.count) bytes, more than the limit of \(maximumBytes); remove unused entries")
      return (nil, report)
    }
    if let offset = offsetOfBadUTF8(bytes) {
      report.add(JSONPath(), "byte \(offset) is not UTF-8 text; save the list as UTF-8")
      return (nil, report)
    }
    guard let document = JSONDocument.read(bytes, &report) else { return (nil, report) }
    guard let raw = RawList(document) else {
      report.add(JSONPath(), "the list must be a JSON object with schema, serial and hosts")
      return (nil, report)
    }
    var checker = ListChecker(rules, report)
    let list = checker.list(raw)
    return (checker.report.count == 0 ? list : nil, checker.report)
  }

  /// The offset of the first byte that makes a text invalid: the first byte that is not UTF-8 or, in valid
  /// UTF-8, the first NUL. `nil` when there is none.
  private static func offsetOfBadUTF8(_ bytes: [UInt8]) -> Int? {
    do {
      _ = try UTF8Span(validating: bytes.span)
      return bytes.firstIndex(of: 0)
    } catch {
      return error.byteOffsets.lowerBound
    }
  }
}
