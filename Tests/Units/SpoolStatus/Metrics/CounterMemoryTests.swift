import SpoolStatus
import Testing

@Suite struct CounterMemoryTests {
  @Test func `counters go on where jobs are gone`() {
    var memory = CounterMemory()
    memory.update(JournalTotals(["bytes": 100, "done": 3]))
    #expect(memory.shown.counts == ["bytes": 100, "done": 3])
    // `clean` has removed two receipts.
    memory.update(JournalTotals(["bytes": 40, "done": 1]))
    #expect(memory.shown.counts == ["bytes": 100, "done": 3])
    memory.update(JournalTotals(["bytes": 50, "done": 2]))
    #expect(memory.shown.counts == ["bytes": 110, "done": 4])
  }

  @Test func `what was not read is not gone`() {
    var memory = CounterMemory()
    memory.update(JournalTotals(["done": 3]))
    memory.update(JournalTotals(["done": 1]), areAllRead: false)
    #expect(memory.shown["done"] == 3)
    memory.update(JournalTotals(["done": 4]))
    #expect(memory.shown["done"] == 4)
  }

  @Test func `receipts that are settled count, whatever becomes of them`() {
    var memory = CounterMemory()
    memory.settled = JournalTotals(["done": 5])
    memory.update(JournalTotals(["done": 1]))
    #expect(memory.shown["done"] == 6)
    #expect(!memory.misses(with: JournalTotals(["done": 1])))
    #expect(memory.misses(with: JournalTotals()))
  }

  @Test func `it is read as it was written, and only for its spool`() {
    var memory = CounterMemory()
    memory.before = 1_795_000_000
    memory.lastDone = 1_794_000_000
    memory.settled = JournalTotals(["failed/http-503": 5, "bytes": .max])
    memory.update(JournalTotals(["done": 1]))
    memory.update(JournalTotals())
    let spool = "/srv/a \"b\"\n# spoolrun-memory shown done=9"
    let text = memory.text(of: spool)
    #expect(text.split(separator: "\n").allSatisfy { $0.hasPrefix("# spoolrun-memory ") })
    #expect(CounterMemory("spoolrun_jobs{} 1\n" + text, of: spool) == memory)
    #expect(CounterMemory(text, of: "/srv/b") == nil)
    let lines = text.split(separator: "\n")
    for index in lines.indices {
      let cut = lines.enumerated().filter { $0.offset != index }.map { $0.element + "\n" }.joined()
      #expect(CounterMemory(cut, of: spool) == nil)
    }
    #expect(CounterMemory("", of: spool) == nil)
  }
}
