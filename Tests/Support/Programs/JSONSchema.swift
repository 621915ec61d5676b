import NetOptTestSupport
/// Validates JSON against the published schemas of the repository, with Debian's `python3-jsonschema`.
package enum JSONSchema {
  /// The message for a machine without the validator.
  package static let missing = "python3-jsonschema is not installed: apt-get install python3-jsonschema"

  /// Debian's Python, for which apt installs the validator. `PATH` may find another Python first.
  private static let python = "/usr/bin/python3"

  /// Whether the validator is installed.
  package static func isInstalled() async throws -> Bool {
    try await run(["-c", "import jsonschema"]).status == 0
  }

  /// Validates documents.
  ///
  /// - Parameters:
  ///   - documents: JSON texts.
  ///   - schema: the name of the schema, NAME in `docs/schemas/NAME.schema.json`.
  /// - Returns: for each document the faults that the validator reports. Empty for a valid document.
  /// - Throws: `TestSupportError` when the schema itself is invalid, or a document is not JSON.
  package static func faults(of documents: [String], by schema: String) async throws -> [String] {
    let directory = try TemporaryDirectory.make("schema")
    let files = try documents.indices.map { index in
      let file = "\(directory)/\(index).json"
      try TextFile.write(documents[index], to: file)
      return file
    }
    // The script prints one line for each document, and replaces line ends inside a message.
    let script = """
      import json, jsonschema, sys
      schema = json.load(open(sys.argv[1]))
      kind = jsonschema.validators.validator_for(schema)
      kind.check_schema(schema)
      validator = kind(schema, format_checker=jsonschema.FormatChecker())
      for name in sys.argv[2:]:
          faults = [e.json_path + ' ' + e.message for e in validator.iter_errors(json.load(open(name)))]
          print(' | '.join(faults).replace(chr(10), ' '))
      """
    let (status, output) = try await run(
      ["-c", script, RepositoryFile.path("docs/schemas/\(schema).schema.json")] + files)
    let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    guard status == 0, lines.count == documents.count else { throw TestSupportError(output) }
    return lines
  }

  /// Validates one document. Returns its faults; empty for a valid document.
  package static func faults(of document: String, by schema: String) async throws -> String {
    try await faults(of: [document], by: schema)[0]
  }

  /// Runs Python until it ends. Returns its exit status and its output.
  private static func run(_ arguments: [String]) async throws -> (status: Int32?, output: String) {
    let child = try ChildProcess(python, arguments, in: try TemporaryDirectory.make("python"))
    try await wait(for: "\(python) to end", within: .seconds(60)) { child.exitStatus() != nil }
    return (child.exitStatus(), TextFile.read(child.output))
  }
}
