import NetOptCore

/// A request with a cache of its parsed fields and its parsed query. Each field and the query are parsed at
/// most once, however many components of a signature refer to them.
///
/// A signature may name up to 256 members of one field, and the verifier needs the values of these members
/// before it can check the signature. Without the cache, anyone could make the verifier parse the field 256
/// times.
struct ParsedRequest {
  /// A parameter of the query. The query may repeat its name.
  struct Parameter {
    /// The decoded value of the first parameter with the name.
    let value: [UInt8]
    /// The number of parameters with the name.
    var count = 1
  }

  let request: SigningRequest
  /// The fields that were parsed as dictionaries so far, or their faults, by the fields' names in lower case.
  private var dictionaries: [String: Result<StructuredDictionary, StructuredFieldFault>] = [:]
  /// The parameters of the query, by their encoded names; `nil` until the first call of `parameter`.
  private var parameters: [[UInt8]: Parameter]?

  init(_ request: SigningRequest) { self.request = request }

  /// Returns a member of a field that is a dictionary; `nil` if the dictionary does not have the key.
  ///
  /// - Parameters:
  ///   - key: the key of the member.
  ///   - name: the name of the field in lower case.
  /// - Throws: `StructuredFieldFault` if the field is not a dictionary.
  mutating func member(
    _ key: String, of name: String
  ) throws(StructuredFieldFault) -> StructuredMember? {
    if let known = dictionaries[name] { return try known.get()[key] }
    let text = request.headers[name] ?? ""
    let read = Result { () throws(StructuredFieldFault) in try StructuredFieldParser.dictionary(text.utf8) }
    dictionaries[name] = read
    return try read.get()[key]
  }

  /// Returns the parameter with a name; `nil` if the query does not have it.
  ///
  /// - Parameter name: the name, percent-encoded in the style `PercentEncoding.Style.form`.
  mutating func parameter(_ name: String) -> Parameter? {
    let parameters = parameters ?? readParameters()
    self.parameters = parameters
    return parameters[Array(name.utf8)]
  }

  /// Parses the query, and reads each "+" as a space.
  private func readParameters() -> [[UInt8]: Parameter] {
    var parameters: [[UInt8]: Parameter] = [:]
    for pair in QueryParameters(request.query, plus: true).pairs {
      var name: [UInt8] = []
      PercentEncoding.append(pair.key, to: &name, .form)
      parameters[name, default: Parameter(value: pair.value, count: 0)].count += 1
    }
    return parameters
  }
}
