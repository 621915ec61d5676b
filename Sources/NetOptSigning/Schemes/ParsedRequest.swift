import NetOptCore

/// Fields and the query of a request, each read once for all components of a signature: a signature may name 256 members of one field, and is not
/// known to be right when they are looked up.
struct ParsedRequest {
  /// A parameter of the query.
  struct Parameter {
    /// The value of the first one of its name, decoded.
    let value: [UInt8]
    /// How many have the name.
    var count = 1
  }

  let request: SigningRequest
  private var dictionaries: [String: Result<StructuredDictionary, StructuredFieldFault>] = [:]
  private var parameters: [[UInt8]: Parameter]?

  init(_ request: SigningRequest) { self.request = request }

  /// A member of a field that is a dictionary, or `nil` when it has none of that key.
  ///
  /// - Parameter name: the field's, in lower case.
  mutating func member(
    _ key: String, of name: String
  ) throws(StructuredFieldFault) -> StructuredMember? {
    if let known = dictionaries[name] { return try known.get()[key] }
    let text = request.headers[name] ?? ""
    let read = Result { () throws(StructuredFieldFault) in try StructuredFieldParser.dictionary(text.utf8) }
    dictionaries[name] = read
    return try read.get()[key]
  }

  /// The parameter of a name, encoded as in a form, or `nil` when the query has none.
  mutating func parameter(_ name: String) -> Parameter? {
    let parameters = parameters ?? readParameters()
    self.parameters = parameters
    return parameters[Array(name.utf8)]
  }

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
