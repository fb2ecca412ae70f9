"""The live explorer in a browser: `grokphys explore`.

`server` starts it, `door` decides who gets in, and `session` is one browser tab. A view (`view`, `views`)
declares its parameters, from which its widgets follow; the state behind it is a run (`runs`). Live figures
are drawn by Bokeh (`plots`), pictures and films by matplotlib (`films`), both from the same panels.
"""
