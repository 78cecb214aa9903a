/// The keys of `status --watch`, in words.
enum WatchHelp {
  /// The page that `?` opens, for windows of 40 columns.
  static let lines = [
    "Keys", "",
    "  j, down    select the next job",
    "  k, up      the one before", "  PgDn, PgUp a page further, back",
    "  g, G       the first, the last",
    "  Enter      what has happened to it", "",
    "  h          hold: pause it",
    "  l          release: let it go on",
    "  r          retry it now",
    "  p          prioritise: start it first",
    "  c          cancel: remove it; asks", "",
    "  s          sort within each state",
    "  /          show jobs that say a text",
    "  Esc        show all; select none", "",
    "  Ctrl-L     draw again",
    "  Ctrl-Z     suspend", "  q          quit",
  ]

  /// What the last line of the screen names, the most useful first.
  static let hints = ["h hold", "l release", "r retry", "c cancel", "p raise", "s sort", "/ filter"]
  /// What it names however narrow it is.
  static let last = ["? help", "q quit"]
}
