internal import ArgumentParser
internal import Glibc
internal import Spool

@main enum Main {
  static func main() {
    Terminal.openMissing()
    // A reader that goes early, such as head(1), ends no command half-way, nor does a limit of a file's size, or who
    // opens a file that has a lease for a moment.
    for number in [SIGPIPE, SIGXFSZ, SIGIO] { signal(number, SIG_IGN) }
    let arguments = RawArguments.all.map { String(decoding: $0, as: UTF8.self) }
    // No arguments means the default command, which downloads. It must not start by accident.
    guard !arguments.isEmpty else {
      ExitStatus.exitOfUsage(
        "started with an empty argument list, without a program name (see execve(2)); doing nothing")
    }
    UnreadableText.refuse(in: Array(RawArguments.all.dropFirst()))
    let commands = Spoolrun.commandNames
    var given = movingSpool(in: Array(arguments.dropFirst()), commands: commands + ["prioritize"])
    if given.starts(with: ["prioritize"]) { given[0] = "prioritise" }
    ForeignOption.refuse(in: given)
    DashedName.refuse(in: given)
    URLAsName.refuse(in: given)
    if let script = CompletionScript.asked(given) {
      Terminal.print(script)
    } else {
      if let complaint = Suggestion.complaint(about: given, commands: commands) { ExitStatus.exitOfUsage(complaint) }
      do {
        var command: any ParsableCommand = try defaultCommand(given, commands) ?? Spoolrun.parseAsRoot(given)
        try command.run()
      } catch {
        end(given, error)
      }
    }
    // A command that has failed has exited with its own status.
    if Terminal.hasOutputFailed { exit(ExitStatus.inputOutput.rawValue) }
  }

  /// The arguments with a leading `--spool SPOOL` moved behind the command's name. Before it, ArgumentParser would take
  /// it for an option of the default command, and the command's name for its spool.
  private static func movingSpool(in arguments: [String], commands: [String]) -> [String] {
    guard let first = arguments.first else { return arguments }
    let length = first == "--spool" ? 2 : first.begins(with: "--spool=") ? 1 : 0
    guard length > 0, arguments.count > length, commands.contains(arguments[length]) else { return arguments }
    return [arguments[length]] + arguments[..<length] + arguments[(length + 1)...]
  }

  /// The default command with these arguments; nil for any other command, and for anything wrong. The parser takes half
  /// as long without the other commands, and cron starts this one each minute.
  private static func defaultCommand(_ arguments: [String], _ commands: [String]) -> Run? {
    guard !arguments.contains(where: { commands.contains($0) }) else { return nil }
    // What is wrong is said with all commands in view.
    return try? Run.parseAsRoot(arguments) as? Run
  }

  /// Ends with the error's status, or prints the help or the version. What is wrong with the arguments is said as all
  /// that is wrong, in a line.
  private static func end(_ arguments: [String], _ error: any Error) {
    let (reason, code) = (Spoolrun.message(for: error), Spoolrun.exitCode(for: error))
    if code.isSuccess { return Terminal.print(reason) }
    guard code == .validationFailure, !reason.isEmpty else { Spoolrun.exit(withError: error) }
    let isWord = reason.utf8.dropFirst().first.map { $0 > 0x60 } ?? false
    let text = isWord ? reason.prefix(1).lowercasedASCII + reason.dropFirst() : reason
    let command = arguments.first.flatMap { Spoolrun.commandNames.contains($0) ? "\($0) " : nil } ?? ""
    let sentence =
      text.ends(with: "?") ? "\(text) See" : (text.ends(with: ".") ? String(text.dropLast()) : text) + "; see"
    ExitStatus.exitOfUsage(withoutControls("\(sentence) `spoolrun \(command)--help`"))
  }
}

struct Spoolrun: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "spoolrun", abstract: "Downloads the files whose URLs are dropped into a spool directory.",
    discussion: """
      One file, now:     spoolrun get https://host/a.bin

      A spool of jobs:   spoolrun init spool
                         printf 'https://host/a.bin\\n' > spool/new/a
                         spoolrun --once spool
                         ls spool/files spool/failed

      Recipes: man spoolrun-howto. Spools and jobs: man 5 spool. All: man spoolrun.
      """, version: "0.3.0",
    subcommands: [
      Get.self, Run.self, Init.self, Doctor.self, Add.self, Subscribe.self, Verify.self, Status.self, Explain.self,
      Wait.self, Report.self, Hold.self, Release.self, Retry.self, Prioritise.self, Cancel.self, Relink.self,
      Clean.self,
    ],
    defaultSubcommand: Run.self)

  /// Each command states its name: to derive it from its type takes a tenth of an idle run.
  static var commandNames: [String] { configuration.subcommands.map { $0._commandName } + ["help"] }
}

/// The scripts that ArgumentParser makes for shells know nothing of a default command, nor of a spool before the
/// command; the one for bash(1) offers no names of commands behind `help`.
enum CompletionScript {
  /// nil where the arguments ask for something else.
  static func asked(_ arguments: [String]) -> String? {
    let option = "--generate-completion-script"
    switch arguments {
    case [option, "bash"], ["\(option)=bash"]: return bash(Spoolrun.completionScript(for: .bash))
    case [option, "zsh"], ["\(option)=zsh"]: return zsh(Spoolrun.completionScript(for: .zsh))
    case [option, "fish"], ["\(option)=fish"]: return fish(Spoolrun.completionScript(for: .fish))
    default: return nil
    }
  }

  /// `unparsed_words` has the words behind the program's name.
  private static func bash(_ script: String) -> String {
    script.replacing(
      "    __spoolrun_offer_flags_options 0\n\n    # Offer subcommand /",
      with: """
            # The spool may be before the command. Without one, the options are those of run.
            if [[ "${unparsed_words[0]}" == --spool && ${#unparsed_words[@]} -gt 2 ]]; then
                unparsed_words=("${unparsed_words[@]:2}")
            fi
            if [[ "${unparsed_words[0]}" == -* ]]; then
                _spoolrun_run
                return
            fi
            __spoolrun_offer_flags_options 0

            # Offer subcommand /
        """
    ).replacing(
      "    __spoolrun_offer_flags_options -1\n}\n",
      with: """
            __spoolrun_offer_flags_options -1
            __spoolrun_add_completions -W '\(Spoolrun.commandNames.joined(separator: "'$'\\n''"))'
        }

        """)
  }

  /// The same for zsh(1), whose functions read `words`, with the program's name, and `CURRENT`.
  private static func zsh(_ script: String) -> String {
    script.replacing(
      "    local -ir current_word_index=\"$((CURRENT - 1))\"\n",
      with: """
            local -ir current_word_index="$((CURRENT - 1))"

            # The spool may be before the command. Without one, the options are those of run.
            if [[ "${words[2]}" == --spool ]] && (( CURRENT > 3 )); then
                words=("${words[1]}" "${(@)words[4,-1]}")
                (( CURRENT -= 2 ))
            fi
            if [[ "${words[2]}" == -* ]]; then
                _spoolrun_run
                return
            fi

        """)
  }

  /// The same for fish(1): the options of run are the program's own, too.
  private static func fish(_ script: String) -> String {
    let lines = script.utf8.split(separator: 0x0A, omittingEmptySubsequences: false).map { String(Substring($0)) }
    let own = lines.filter { $0.utf8.contains("flags_or_options \"spoolrun run\" ".utf8) }
      .map { $0.replacing("\"spoolrun run\"", with: "\"spoolrun\"") }.filter { !lines.contains($0) }
    let parsing = "            __spoolrun_parse_subcommand 1 "
    let command = lines.first { $0.begins(with: "\(parsing)'once' ") } ?? parsing
    return script.replacing(
      "__spoolrun_parse_subcommand 0 'version' 'h/help'\n",
      with: "__spoolrun_parse_subcommand 0 \(command.dropFirstBytes(parsing.utf8.count))\n")
      + own.map { "\n" + $0 }.joined() + "\n"
  }
}
