import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

/// A sample of the matrix, in processes of its own. Where they may have networks of their own, two processes share the cells. Otherwise one runs all
/// of them.
@Suite struct FaultMatrixTests {
  @Test(
    "in no cell does netopt fail what curl completes, double a request, hide a cause or outlive a deadline")
  func cells() async throws {
    let directory = try TemporaryDirectory.make("faults")
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = FileBytes.folder(of: tests) + "/netopt-faults"
    let shared = NetworkNamespace.isAvailable ? ["--jobs", "2"] : []
    let matrix = try ChildProcess(program, ["--sample", "40", "--short"] + shared, in: directory)
    try await wait(for: "the cells to be run", within: .seconds(600)) { matrix.exitStatus() != nil }
    let output = TextFile.read(matrix.output)
    #expect(matrix.exitStatus() == 0, "\(output)")
    // Otherwise nothing was tested.
    #expect(output.contains("\n40 cells, 0 with violations"), "\(output)")
  }
}
