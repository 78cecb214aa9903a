import Spool
import TestSupport
import Testing

@Suite struct OptionTests {
  private let manual: Manual

  init() throws { manual = try Manual("man/spoolrun.1") }

  @Test(arguments: Help.commands)
  func `each option of the program is in the manual, and none else`(command: String) async throws {
    #expect(try await Help.options(of: command) == documented(command))
  }

  /// Neither for a name with a dash in front, nor for an option of curl or wget: their refusals begin with the word.
  @Test(arguments: Help.commands)
  func `no option of the program is refused as something else`(command: String) async throws {
    for option in try await Help.options(of: command) {
      let given = try await run([productPath("spoolrun"), command, option, "--help"])
      #expect(!given.errors.contains("spoolrun: \(option): "), "\(given.errors)")
    }
  }

  @Test(arguments: Help.commands)
  func `the synopsis names the options that are explained`(command: String) throws {
    let explained = documented(command)
    let named = Set(synopsis(command))
    #expect(named.subtracting(explained).isEmpty)
    for item in optionItems(command) {
      #expect(!named.isDisjoint(with: item), "\(item) is not in the synopsis")
    }
  }

  @Test func `the help is one screen, and names the recipes`() async throws {
    let help = try await runTool([productPath("spoolrun"), "--help"]).output
    #expect(help.split(separator: "\n", omittingEmptySubsequences: false).count <= 40, "\(help)")
    #expect(help.contains("spoolrun-howto") && help.contains("spoolrun get http"))
  }

  @Test func `each command of the program is in the manual`() async throws {
    let help = try await runTool([productPath("spoolrun"), "--help"]).output
    let lines = help.split(separator: "\n", omittingEmptySubsequences: false)
    let listed = lines.drop { !$0.hasPrefix("SUBCOMMANDS:") }.dropFirst().prefix { !$0.isEmpty }
      // Lines that are set in further go on with the one above.
      .filter { !$0.hasPrefix("   ") }.compactMap { $0.split(separator: " ").first.map(String.init) }
    let explained = manual.names("DESCRIPTION", "Cm")
    #expect(Set(listed).subtracting(["help"]) == Set(explained))
    #expect(Set(explained) == Set(Help.commands))
  }

  @Test func `whatever a job may say, add can`() async throws {
    let options = try await Help.options(of: "add")
    // URLs are its arguments.
    let missing = JobKey.ofJobs.map(\.name).filter { $0 != "url" && !options.contains("--\($0)") }
    #expect(missing.isEmpty)
  }

  /// Its `--output` is the place, which `root:` is for. It has no keys for signatures, and keeps no lists of pieces.
  @Test func `whatever add can, get can, but for roots, signatures and pieces`() async throws {
    let (add, get) = try await (Help.options(of: "add"), Help.options(of: "get"))
    let missing = JobKey.ofJobs.map { "--\($0.name)" }.filter { add.contains($0) && !get.contains($0) }
    #expect(missing.sorted() == ["--pieces", "--root", "--signature"])
  }

  @Test func `the manual and the help call the values of add's options the same`() async throws {
    let help = try await runTool([productPath("spoolrun"), "add", "--help"]).output
    let manuals = manual.section("OPTIONS").drop { $0 != ".Cm add ;" }.prefix { $0 != ".Cm verify :" }
    for key in JobKey.ofJobs {
      guard case .value = key.option else { continue }
      #expect(help.contains("--\(key.name) <\(key.valueName)>"))
      let item = manuals.first { $0.hasPrefix(".It Fl") && $0.split(separator: " ").contains("-\(key.name)") }
      #expect(item?.hasSuffix(" Ar \(key.valueName.uppercased())") == true, "\(key.name): \(item ?? "")")
    }
  }

  /// The shells' scripts come from the same declarations as the help.
  @Test(arguments: ["bash", "zsh", "fish"])
  func `completions have every key of a job`(shell: String) async throws {
    let script = try await runTool([productPath("spoolrun"), "--generate-completion-script", shell]).output
    for key in JobKey.ofJobs where key.name != "url" {
      #expect(script.contains(shell == "fish" ? "-l '\(key.name)'" : "--\(key.name)"), "\(key.name)")
    }
  }

  /// The spellings of each option that the manual explains for a command.
  private func optionItems(_ command: String) -> [[String]] {
    var items: [[String]] = []
    var isWanted = false
    for line in manual.section("OPTIONS") {
      let words = line.split(separator: " ").map(String.init)
      if words.first == ".Cm", words.count == 3, [":", ";"].contains(words[2]) {
        isWanted = words[1] == command
      } else if isWanted, words.starts(with: [".It", "Fl"]) {
        items.append(Manual.options(words.dropFirst()))
      }
    }
    return items
  }

  private func documented(_ command: String) -> Set<String> { Set(optionItems(command).joined()) }

  /// The options in a command's part of the synopsis.
  private func synopsis(_ command: String) -> [String] {
    var options: [String] = []
    var isWanted = false
    for line in manual.section("SYNOPSIS") {
      let words = line.split(separator: " ").map(String.init)
      if words == [".Nm"] { isWanted = false }
      if words == [".Cm", command] || words == [".Op", "Cm", command] { isWanted = true }
      if isWanted, words.first == ".Fl" { options += Manual.options(["Fl"] + words.dropFirst()) }
      if isWanted, words.starts(with: [".Op", "Fl"]) { options += Manual.options(words.dropFirst()) }
    }
    return options
  }
}
