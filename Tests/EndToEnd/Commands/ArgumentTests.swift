import Glibc
import TestSupport
import Testing

/// The command is the one that was given, wherever the program runs: none is guessed, and the default one downloads.
@Suite struct ArgumentTests {
  @Test(.enabled("needs root and a mount namespace") { try await Need.mounts.isMet() })
  func `without proc the arguments are still there`() async throws {
    let spool = try TemporarySpool()
    try spool.drop("x", "http://127.0.0.1:9/x\n")
    // As in a chroot without it.
    let withoutProc = [
      "/usr/bin/unshare", "--mount", "/bin/sh", "-euc", "mount -t tmpfs none /proc; exec \"$@\"", "sh",
    ]
    try await check(spool, prefix: withoutProc)
  }

  @Test func `what is wrong with a word of a stranger steers no terminal`() async throws {
    // As `*` gives it.
    try await spoolrun("status", "--x\u{1B}[31m").exits(64, saying: "--x [31m")
  }

  /// A shared library whose constructor makes the environment grow: it moves, and who looks for the arguments beside
  /// it, as a program does that Swift's runtime is linked into, finds none.
  @Test(.enabled("needs cc") { try await Need.program("cc").isMet() })
  func `a library that sets variables at its start takes no argument away`() async throws {
    let directory = try TemporaryDirectory()
    let source = """
      #include <stdio.h>
      #include <stdlib.h>
      #include <unistd.h>
      __attribute__((constructor)) static void fill(void) {
        char name[64];
        /* Anew in each process: what was inherited would only be replaced. */
        unsigned tag = (unsigned)(size_t)name ^ (unsigned)getpid();
        for (int i = 0; i < 1000; i++) { snprintf(name, sizeof name, "F_%x_%d", tag, i); setenv(name, "value", 1); }
      }
      """
    let library = "\(directory.path)/filler.so"
    try writeFile("\(directory.path)/filler.c", source)
    try await runTool(["/usr/bin/cc", "-shared", "-fPIC", "-o", library, "\(directory.path)/filler.c"])
    let spool = try TemporarySpool()
    try spool.drop("x", "http://127.0.0.1:9/x\n")
    defer { withExtendedLifetime(directory) {} }
    try await check(spool, environment: ["LD_PRELOAD": library])
  }

  private func check(_ spool: TemporarySpool, environment: [String: String] = [:], prefix: [String] = []) async throws {
    func outcome(_ arguments: String...) async throws -> CommandResult {
      try await startSpoolrun(arguments, environment: environment, directory: spool.root + "/..", prefix: prefix)
        .result()
    }
    let version = try await outcome("--version")
    // Where a library cannot be loaded, ld.so(8) says so and goes on.
    #expect(version.errors == "", "\(version)")
    #expect(version.status == .exited(0) && version.output.first?.isNumber == true, "\(version)")
    let usage = try await outcome("cancel", "--spool", spool.root)
    #expect(usage.status == .exited(64) && spool.places(of: "x") == ["new/x"], "\(usage)")
    try await outcome("cancel", "--all", "-v", "--spool", spool.root).exits(0, printing: "new/x removed")
    #expect(spool.places(of: "x") == [])
  }
}
