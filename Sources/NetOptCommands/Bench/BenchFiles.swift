import NetOptBench

/// The output files of a run. The initializer, which runs before the measurement, creates a draft of each
/// file. `write` completes each draft and then puts it in the place of the file.
struct BenchFiles: ~Copyable {
  /// The draft of the first file for the JSON report. As for the other drafts, `nil` means that the user
  /// named no such file, or that `write` has put the file in its place.
  private var json: FileReplacement?
  /// The draft of the second file for the JSON report, which has the same content as the first.
  private var otherJSON: FileReplacement?
  private var csv: FileReplacement?
  private var markdown: FileReplacement?
  private var html: FileReplacement?

  /// Creates the drafts.
  ///
  /// - Throws: `OutputError` when one of the files cannot be written.
  init(_ names: BenchArguments.Files) throws(OutputError) {
    json = nil
    otherJSON = nil
    csv = nil
    markdown = nil
    html = nil
    if let name = names.json.first { json = try FileReplacement(name) }
    if let name = names.json.dropFirst().first { otherJSON = try FileReplacement(name) }
    if let name = names.csv { csv = try FileReplacement(name) }
    if let name = names.markdown { markdown = try FileReplacement(name) }
    if let name = names.html { html = try FileReplacement(name) }
  }

  /// Writes the report to all files, even if a signal has cancelled the task. If a file cannot be written,
  /// the method still writes the other files.
  ///
  /// - Throws: the first failure.
  mutating func write(_ report: BenchReport) throws(OutputError) {
    var failure: OutputError?
    // The samples come first, because the JSON report names their file.
    Self.write(csv.take(), &failure) { SampleTable(report).chunks.map { Array($0.utf8) } }
    Self.write(json.take(), &failure) { [JSONReport(report).value.bytes() + [0x0a]] }
    Self.write(otherJSON.take(), &failure) { [JSONReport(report).value.bytes() + [0x0a]] }
    Self.write(markdown.take(), &failure) { [Array(MarkdownReport(report).text.utf8)] }
    Self.write(html.take(), &failure) { [Array(HTMLReport(report).text.utf8)] }
    if let failure { throw failure }
  }

  /// Writes the chunks to a file, if there is one, and puts it in place. Keeps the first error in `failure`.
  private static func write(
    _ file: consuming FileReplacement?, _ failure: inout OutputError?, _ chunks: () -> [[UInt8]]
  ) {
    guard let file = file.take() else { return }
    do throws(OutputError) {
      for chunk in chunks() { try file.write(chunk, ignoresCancellation: true) }
      try file.commit()
    } catch {
      failure = failure ?? error
    }
  }
}
