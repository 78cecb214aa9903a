import Foundation
import Glibc
import TestSupport
import Testing

/// The schema of `status --json`: what the program prints fits it, and the manual has all of it.
@Suite struct StatusSchemaTests {
  private let schema = SourceTree.contrib("status.schema.json")

  /// Every state, with something known of each.
  private func fill(_ spool: TemporarySpool) throws {
    func write(_ path: String, _ text: String) throws { try spool.write(path, text) }
    let failure = "failed: 2026-11-21T03:00:41Z attempt=1 class=temporary code=cut at=0 reason=x\n"
    try write("failed/gone \u{1}\u{202E}\"x\"", "http://h/x\n" + failure)
    try write("failed/nonsense", "neither\nnor\n")
    try write("partial/busy", "url: http://h/x\nsize: 10\n" + failure)
    try write("partial/busy.part", "1234")
    try setModificationTime(spool.path("partial/busy"), secondsFromNow: 1000)
    try write("partial/stopped", "http://h/x\ninterrupted: 2026-11-21T03:00:41Z attempt=1 at=0 reason=stopped\n")
    try write("cur/crashed:host.1.0000000a", "http://h/x\n")
    try setModificationTime(spool.path("cur/crashed:host.1.0000000a"), secondsFromNow: -1000)
    try write("hold/held", "http://h/x\n")
    try write("new/waiting", "url: http://h/x\npriority: low\n")
    try write("hold/feed", "url: http://h/feed.xml\nevery: 1h\n")
    let end = "verified: 2026-11-21T03:02:40Z size=100 crc32=1c291ca3 part=7\n"
    try write(
      "done/d", "http://h/x\n\(end)done: 2026-11-21T03:02:41Z attempts=2 output=x bytes-fetched=100 seconds=9\n")
    for directory in ["standing", "workers", "servers"] { mkdir(spool.path(directory), 0o755) }
    try write("standing/order", "url: http://h/feed.xml\nevery: 1h\n")
    try write(
      "servers/http-rests.example-80",
      "server: http://rests.example:80\nrests: 2026-11-21T03:02:40Z failed=2026-11-21T03:02:40Z "
        + "until=2099-01-01T00:00:00Z cause=unreachable code=connect failures=2 host=a reason=x\n")
    try setModificationTime(spool.path("servers/http-rests.example-80"), secondsFromNow: 1000)
    try write("workers/dead.1.0000000a", "nonsense\n")
    try setModificationTime(spool.path("workers/dead.1.0000000a"), secondsFromNow: -1000)
  }

  private func isValid(_ json: String, in spool: TemporarySpool) async throws -> CommandResult {
    let program = """
      import json, jsonschema, sys
      schema, data = (json.load(open(name)) for name in sys.argv[1:])
      jsonschema.Draft202012Validator.check_schema(schema)
      def strict(node):
          if isinstance(node, dict):
              if "properties" in node: node["additionalProperties"] = False
              for value in node.values(): strict(value)
      def names(node, found):
          for key, value in node.items() if isinstance(node, dict) else []:
              found |= set(value) if key == "properties" else set()
              names(value, found)
          return found
      def members(node, found):
          if isinstance(node, dict): found |= set(node)
          for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
              members(value, found)
          return found
      strict(schema)
      for error in jsonschema.Draft202012Validator(schema).iter_errors(data): print("wrong:", error)
      print("unseen:", *sorted(names(schema, set()) - members(data, set())))
      """
    let file = spool.path("tmp/status.json")
    try writeFile(file, json)
    return try await run(["/usr/bin/python3", "-c", program, schema, file])
  }

  @Test(.enabled("needs python3-jsonschema") { try await Need.jsonSchema.isMet() })
  func `what it prints fits the schema, and has all of it`() async throws {
    let scene = try Scene()
    try fill(scene.spool)
    let output = try TemporaryDirectory()
    let worker = try startSpoolrun([
      "--jobs", "1", "--max-size", "1G", "--limit-rate", "9M", "--gate", "true", "--min-free", "1k", "-d", output.path,
      scene.spool.root,
    ])
    defer { worker.send(signal: SIGKILL) }
    try scene.spool.drop("slow", "url: \(scene.server.url("/slow"))\npriority: high\n")
    try scene.spool.drop("behind", "url: \(scene.server.url("/slow"))\n")
    try await scene.waitForHalf("slow")
    var result = try await scene.spoolrun("status", "--json")
    var verdict = try await isValid(result.output, in: scene.spool)
    // The worker may say only after that what it runs.
    for _ in 0..<200 where verdict.output.hasPrefix("unseen:") && verdict.output != "unseen: only\n" {
      result = try await scene.spoolrun("status", "--json")
      verdict = try await isValid(result.output, in: scene.spool)
    }
    #expect(result.status == .exited(0))
    // Only the worker of `get` has that.
    #expect(verdict.output == "unseen: only\n", "\(verdict)\n\(result.output)")
    // The test itself: a number as text, a member that is unknown, and one that lacks.
    for (old, new) in [("\"jobs\":1", "\"jobs\":\"1\""), ("\"format\"", "\"formt\""), ("\"cause\"", "\"because\"")] {
      try #require(result.output.contains(old), "\(old)")
      let other = try await isValid(result.output.replacing(old, with: new), in: scene.spool)
      #expect(other.output.contains("wrong:"), "\(old)")
    }
  }

  @Test func `the manual names each member and each cause`() throws {
    var names: Set<String> = []
    func collect(_ node: Any) {
      guard let object = node as? [String: Any] else { return (node as? [Any] ?? []).forEach(collect) }
      if let properties = object["properties"] as? [String: Any] { names.formUnion(properties.keys) }
      names.formUnion((object["enum"] as? [Any] ?? []).compactMap { $0 as? String })
      object.values.forEach(collect)
    }
    collect(try JSONSerialization.jsonObject(with: Data(try readFile(schema))))
    #expect(names.count > 60)
    let lines = try SourceTree.lines("man/spoolrun.1")
    let section = lines.drop { $0 != ".Sh STATUS" }.dropFirst().prefix { $0 != ".Ss Keys" }
    let words = Set(section.flatMap { $0.split { " ,;.=".contains($0) }.map(String.init) })
    for name in names.sorted() { #expect(words.contains(name), "\(name)") }
  }
}
